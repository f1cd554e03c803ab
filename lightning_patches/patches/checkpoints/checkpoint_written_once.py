"""A checkpoint is written directly to its directory, without copies in memory or TMPDIR."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Consequence, Impact, Patch, Target, Upstream, name_and_title
from lightning_patches.patches.checkpoints import _beside

_CLOUD_IO = "fabric.utilities.cloud_io"


def _write_beside(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _atomic_save(checkpoint: Any, filepath: Any) -> None:
        if not _beside.is_possible(filepath):
            original(checkpoint, filepath)
            return
        import torch

        with _beside.written(filepath) as file:
            torch.save(checkpoint, file)

    return _atomic_save


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    group="performance",
    affected=(">=2.4.0,<=2.6.6",),
    targets=(Target(f"{_CLOUD_IO}:_atomic_save", _write_beside),),
    upstream=Upstream(issues=(21253,), pull_requests=(21824,), commit="7b57f9c65b", merged=True),
    impact=Impact(
        "Saving a checkpoint takes memory for another copy of it, and as much space in the temporary directory: "
        "large ones run out of memory, or out of space on a small /tmp.",
        (
            "out of memory while saving a checkpoint",
            "ModelCheckpoint needs memory for the checkpoint twice",
            "No space left on device in /tmp while saving a checkpoint",
            "_atomic_save writes the checkpoint into a BytesIO before it writes the file",
            "PermissionError when a checkpoint is saved to a cross-device mount",
        ),
        consequences=(
            Consequence(
                ("in copystat ... PermissionError: [Errno 1] Operation not permitted",),
                r"\bin _atomic_save\b",
                "the directory is on another device than TMPDIR, and refuses the rights that fsspec below 2025.5.0 "
                "copies with the file",
                is_sure=True,
            ),
        ),
    ),
    opt_in="users who run out of memory, or of space in TMPDIR, while a large checkpoint is saved to a local disk",
    note="For users who run out of memory, or of space in TMPDIR, while a large checkpoint is saved. Opt-in, as "
    "the file does not go through fsspec: a file system class that is registered for local files (encryption, "
    "say) is not asked, and who watches the directory sees a second file, which a killed process leaves there. "
    "Local files only. It also saves to a directory on another device than TMPDIR that refuses to change rights, which "
    "ends in a PermissionError with fsspec below 2025.5.0 (issue 20270). An error while saving leaves the previous "
    "checkpoint in place. A checkpoint of which own-checkpoint-load has to know the bytes, as it holds objects, is "
    "written as before. Goes further than the official fix: the official fix avoids the copy in memory. Here the file "
    "is also written in its own directory, and takes its name when it is complete, so that nothing is left for another "
    "device to copy.",
    after=("checkpoint-permission-error",),
)
