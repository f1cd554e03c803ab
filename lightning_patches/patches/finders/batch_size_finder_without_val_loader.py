"""The batch size finder accepts a module with a validation_step and without a val_dataloader."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target
from lightning_patches.patches.finders._loops import val_source


def _reset_dataloaders(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset_dataloaders(trainer: Any) -> None:
        loop = trainer._active_loop
        source = val_source(loop)
        if source is None or source.is_defined():
            return original(trainer)
        loop._combined_loader = None
        loop.setup_data()
        return None

    return reset_dataloaders


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=2.1.1,<=2.6.6",),
    targets=(Target("pytorch.tuner.batch_size_scaling:_reset_dataloaders", _reset_dataloaders),),
    impact=Impact(
        "The batch size finder fails if the module has a validation_step and no val_dataloader, although fit trains "
        "it without validation.",
        ("`val_dataloader` must be implemented to be used with the Lightning Trainer",),
        error="MisconfigurationException: `val_dataloader` must be implemented to be used with the Lightning Trainer",
        frames=("/tuner/batch_size_scaling.py",),
    ),
    note="Pull request 18854, which creates the validation loader again in each trial, introduced the bug in 2.1.1.",
)
