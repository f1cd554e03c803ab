"""After sync_batchnorm, a batch norm in evaluation mode is still in it."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target


def _revert(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def revert(self: Any, model: Any) -> Any:
        converted = original(self, model)
        if converted is not model:
            converted.training = model.training
        return converted

    return revert


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "a frozen batch norm after a run with sync_batchnorm=True"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.plugins.layer_sync:TorchSyncBatchNorm.revert", _revert),),
    impact=Impact(
        "After a run with sync_batchnorm=True, a batch norm layer that was in evaluation mode is in training mode.",
        ("frozen batch norm is in train mode after sync_batchnorm",),
        would_tell="that a run with sync_batchnorm=True came before",
    ),
)
