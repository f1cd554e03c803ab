"""After a search, trainer.ckpt_path does not name the deleted file of the finder."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target


def _keep_path(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def finder(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        path = trainer._checkpoint_connector._ckpt_path
        result = original(trainer, *args, **kwargs)
        trainer._checkpoint_connector._ckpt_path = path
        return result

    return finder


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.tuner.lr_finder:_lr_find", _keep_path),
        Target("pytorch.tuner.batch_size_scaling:_scale_batch_size", _keep_path),
    ),
    impact=Impact(
        "After a learning rate or batch size search, trainer.ckpt_path names the temporary checkpoint of the search, "
        "which is deleted.",
        ("trainer.ckpt_path is .lr_find_*.ckpt", "trainer.ckpt_path is .scale_batch_size_*.ckpt"),
        would_tell="that trainer.ckpt_path names a hidden file that does not exist",
    ),
    after=("modes-after-error",),
)
