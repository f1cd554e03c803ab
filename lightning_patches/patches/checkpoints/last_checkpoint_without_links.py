"""last.ckpt is a copy if the file system does not support links."""

import os
import shutil
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _link_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def link_checkpoint(trainer: Any, filepath: str, linkpath: str) -> None:
        try:
            original(trainer, filepath, linkpath)
        except OSError:
            if not trainer.is_global_zero or os.path.lexists(linkpath):
                raise
            copy = shutil.copytree if os.path.isdir(filepath) else shutil.copy
            copy(filepath, linkpath)
            trainer.strategy.barrier()  # the original raised before its barrier

    return link_checkpoint


PATCH = Patch(
    group="crash",
    affected=(">=2.1.0,<2.1.2",),
    targets=(Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint._link_checkpoint", _link_checkpoint),),
    upstream=Upstream(pull_requests=(18942,), fixed_in="2.1.2"),
    impact=Impact(
        "With save_last=True, training raises an OSError at the first checkpoint if links cannot be created: on "
        "Windows without the permission, and on vfat, SMB and some FUSE file systems.",
        (
            "A required privilege is not held by the client",
            "Operation not permitted: '...' -> '...'",
            "Operation not supported: '...' -> '...'",
            "Function not implemented: '...' -> '...'",
            "Permission denied: '...' -> '...'",
            "save_last fails with a symlink on a network drive",
        ),
        error="PermissionError: [Errno 1] Operation not permitted: '...' -> '...'",
        frames=("model_checkpoint.py in _link_checkpoint",),
    ),
    added="0.2.0",
    note="A checkpoint that is a directory is also copied; the official fix does not do this.",
    after=("last-checkpoint-link-relative",),
)
