"""DDP synchronizes parameters that are unfrozen after DDP has wrapped the module."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints.compiled_names import parts

_DDP = "pytorch.strategies.ddp"
_FROZEN = "_lightning_patches_ddp_ignores"


def frozen_in(model: Any) -> list[tuple[str, Any]]:
    """Return the frozen parameters, which DDP will ignore.

    ``named_parameters`` is not used, since it may be overridden.
    """
    ignored = set(vars(model).get("_ddp_params_and_buffers_to_ignore", ()))
    named = [
        (f"{path}.{name}" if path else name, one)
        for path, part in parts(model)
        for name, one in vars(part).get("_parameters", {}).items()
    ]
    return [(name, one) for name, one in named if one is not None and not one.requires_grad and name not in ignored]


def trained_among(frozen: list[tuple[str, Any]], optimizers: Callable[[], list[Any]]) -> list[str]:
    """Return the names of the parameters that were unfrozen later and that an optimizer steps.

    ``optimizers`` may read a property of the program, so it is called only if a parameter was unfrozen.
    """
    unfrozen = [(name, parameter) for name, parameter in frozen if parameter.requires_grad]
    groups = (group["params"] for optimizer in (optimizers() if unfrozen else ()) for group in optimizer.param_groups)
    stepped = {id(parameter) for group in groups for parameter in group}
    return [name for name, parameter in unfrozen if id(parameter) in stepped]


def _setup_model(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _setup_model(self: Any, model: Any) -> Any:
        wrapped = original(self, model)
        setattr(self, _FROZEN, frozen_in(model))
        return wrapped

    return _setup_model


def _on_train_batch_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_start(self: Any, batch: Any, batch_idx: int) -> None:
        import torch

        frozen = vars(self).get(_FROZEN, [])
        is_wrapped = isinstance(self.model, torch.nn.parallel.DistributedDataParallel)
        # With a communication hook the module is not wrapped again, because the hook's state belongs to the old
        # buckets.
        if is_wrapped and self._ddp_comm_state is None and trained_among(frozen, lambda: self.optimizers):
            module = self.model.module
            self.model = module  # frees the old wrapper before a new one is created
            self.model = self._setup_model(module)
            self._register_ddp_hooks()
        original(self, batch, batch_idx)

    return on_train_batch_start


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect(
        "numbers",
        "under DDP, parameters that are unfrozen after fit has started are trained with the data of all ranks",
    ),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"{_DDP}:DDPStrategy._setup_model", _setup_model),
        Target(f"{_DDP}:DDPStrategy.on_train_batch_start", _on_train_batch_start, adds=True),
    ),
    upstream=Upstream(issues=(20340,)),
    impact=Impact(
        "Under DDP, parameters that BackboneFinetuning or the script unfreezes after fit has started are not "
        "synchronized: each rank trains a different backbone, without a warning.",
        ("DDP ignores parameters that were frozen at the start", "unfrozen layers are not synchronized under DDP"),
    ),
    opt_in="users who unfreeze parameters during training on several devices with DDP",
    signs=("BackboneFinetuning",),
    note="Opt-in because DDP wraps the module again, which runs collectives, before the first batch with newly "
    "unfrozen parameters that an optimizer updates. All ranks must unfreeze the same parameters before "
    "the same batch. From then on, an unfrozen parameter that does not contribute to the loss requires "
    "find_unused_parameters=True. Parameters that training_step itself unfreezes are synchronized from "
    "the next batch on. With a ddp_comm_state the patch does nothing. Without the patch, never freeze the "
    "parameters; instead, put them in a parameter group with lr=0 until you want to train them.",
)
