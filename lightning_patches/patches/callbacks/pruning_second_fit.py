"""ModelPruning with lottery tickets can be used in a second fit of a pruned model."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.loops._way_out import named_modules


def _setup(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup(self: Any, trainer: Any, pl_module: Any, stage: str) -> None:
        # A pruned weight is computed from the parameter and a mask. Only tensors without a graph can be copied.
        computed = [
            (vars(module), name, value)
            for _, module in named_modules(pl_module)
            for name, value in vars(module).items()
            if name + "_orig" in vars(module).get("_parameters", ()) and not getattr(value, "is_leaf", True)
        ]
        for attributes, name, value in computed:
            attributes[name] = value.detach()
        try:
            original(self, trainer, pl_module, stage)
        finally:
            for attributes, name, value in computed:
                attributes[name] = value

    return setup


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.callbacks.pruning:ModelPruning.setup", _setup),),
    upstream=Upstream(issues=(8542,)),
    impact=Impact(
        "A second fit of a model that ModelPruning has pruned ends in an error about the deepcopy protocol, with the "
        "lottery ticket hypothesis and make_pruning_permanent=False.",
        ("Only Tensors created explicitly by ... support the deepcopy protocol", "ModelPruning fails in a second fit"),
        error="RuntimeError: Only Tensors created explicitly by ... support the deepcopy protocol at the moment. ...",
        frames=("/callbacks/pruning.py",),
    ),
    note="The second fit's winning ticket has the weights with which the second fit starts.",
)
