"""The checkpoint of a compiled model has the parameter names of the uncompiled model."""

from collections import OrderedDict
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints.compiled_names import uncompiled

_CONNECTORS = "pytorch.trainer.connectors.checkpoint_connector"
_GETS = "_get_lightning_module_state_dict"


def _get(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _get_lightning_module_state_dict(self: Any) -> Any:
        state = original(self)
        strategy = upstream_module(namespace, "pytorch.strategies.strategy").Strategy
        if type(self.trainer.strategy).lightning_module_state_dict is not strategy.lightning_module_state_dict:
            return state  # FSDP, for example, finds its shards by these names
        renamed: Any = OrderedDict((uncompiled(name), value) for name, value in state.items())
        if len(renamed) < len(state) or set(renamed) == set(state):
            return state
        renamed._metadata = OrderedDict(
            (uncompiled(path), about) for path, about in getattr(state, "_metadata", {}).items()
        )
        return renamed

    return _get_lightning_module_state_dict


PATCH = Patch(
    added="0.2.0",
    group="compat",
    changes_results=Effect("files", "the names in the checkpoint's state dict"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTORS}:_CheckpointConnector.{_GETS}", _get, since="2.0.0"),
        Target(f"{_CONNECTORS}:CheckpointConnector.{_GETS}", _get, before="2.0.0"),
    ),
    upstream=Upstream(issues=(17415, 20233)),
    impact=Impact(
        "If parts of a model are compiled by torch.compile, its checkpoint has _orig_mod. in the names of the "
        "weights, and only a model that is compiled in the same way can load it.",
        ("_orig_mod.",),
    ),
    opt_in="users who compile parts of a model and load its checkpoints in environments without this package",
    signs=("compile Trainer",),
    note="The patch changes only the Trainer's checkpoints. Opt-in because on_save_checkpoint and "
    "on_load_checkpoint get other names, and because compiled-names, a default patch, already lets a "
    "model load the names of its compiled form. State dicts that FSDP and ModelParallelStrategy collect, "
    "and weights that WeightAveraging inserts, are unchanged. Fabric's checkpoints are also unchanged: "
    "from 2.2.0 on Fabric removes _orig_mod from a model that was compiled as a whole, and a plain module "
    "with compiled parts could not load other names. Without the patch, rename the entries in "
    "on_save_checkpoint, and back in on_load_checkpoint.",
)
