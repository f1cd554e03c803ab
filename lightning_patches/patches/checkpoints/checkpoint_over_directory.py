"""Saving a checkpoint to a path that is a directory raises an error."""

import os
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _atomic_save(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _atomic_save(checkpoint: Any, filepath: Any) -> None:
        path = str(filepath)
        if os.path.isdir(path[7:] if path.startswith("file://") else path):
            raise IsADirectoryError(f"The path of the checkpoint is a directory: {path}")
        original(checkpoint, filepath)

    return _atomic_save


PATCH = Patch(
    group="correctness",
    changes_results=Effect("how it ends", "a checkpoint that would be lost raises an error"),
    affected=(">=2.4.0,<=2.6.6",),
    targets=(Target("fabric.utilities.cloud_io:_atomic_save", _atomic_save),),
    upstream=Upstream(),
    impact=Impact(
        "If a directory has the name of a checkpoint, for example a sharded checkpoint of an earlier run, "
        "`fabric.save` and `trainer.save_checkpoint` raise no error. The file is moved into the directory and has a "
        "random name there, such as `tmp3k1x0f2a`.",
        ("the checkpoint is a file with a random name within the directory",),
    ),
    note="The error is that of 2.3.3 and earlier. Delete the directory, or save to another path.",
    added="0.3.0",
    after=("own-checkpoint-load",),
)
