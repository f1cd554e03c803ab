"""Warn when a checkpoint is saved to a path that is a directory."""

import os
from typing import Any, Callable

from lightning_patches.patch import Impact, Target
from lightning_patches.patches._warning import observe, warn, warning


def _atomic_save(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def after(_: None, __: None, checkpoint: Any, filepath: Any) -> None:
        path = str(filepath)
        if os.path.isdir(path[7:] if path.startswith("file://") else path):
            warn(
                "checkpoint-over-directory",
                f"{path} is a directory, so the checkpoint is in it, in a file with a random name. Delete the "
                "directory, or save to another path.",
            )

    return observe(original, after=after)


PATCH = warning(
    Target("fabric.utilities.cloud_io:_atomic_save", _atomic_save),
    affected=(">=2.4.0,<=2.6.6",),
    impact=Impact(
        "If a directory has the name of a checkpoint, for example a sharded checkpoint of an earlier run, "
        "`fabric.save` and `trainer.save_checkpoint` raise no error. The file is moved into the directory and has a "
        "random name there, such as `tmp3k1x0f2a`.",
        ("the checkpoint is a file with a random name within the directory",),
    ),
    added="0.3.0",
    after=("own-checkpoint-load",),
)
