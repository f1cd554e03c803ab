"""A checkpoint is written directly to its directory, without copies in memory or TMPDIR."""

from typing import Any, Callable

from lightning_patches.patch import Consequence, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints import _beside


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
    group="performance",
    affected=(">=2.4.0,<=2.6.6",),
    targets=(Target("fabric.utilities.cloud_io:_atomic_save", _write_beside),),
    upstream=Upstream(issues=(21253,), pull_requests=(21824,), commit="7b57f9c65b", merged=True),
    impact=Impact(
        "Saving a checkpoint needs memory for another copy of it, and as much space in the temporary "
        "directory: large checkpoints run out of memory, or fill a small /tmp.",
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
                "the directory is on another device than TMPDIR, and refuses the permissions that fsspec below "
                "2025.5.0 copies with the file",
                is_sure=True,
            ),
        ),
    ),
    opt_in="users who run out of memory, or of space in TMPDIR, when a large checkpoint is saved to a local disk",
    note="Opt-in because the file does not pass through fsspec: a file system class that is registered for "
    "local files, for example for encryption, is not used. A program that watches the directory also sees "
    "a temporary file, which stays if the process is killed. The patch acts on local files only. It can "
    "also save to a directory on another device than TMPDIR that refuses changes of permissions, where "
    "fsspec below 2025.5.0 raises a PermissionError (issue 20270). If saving fails, the previous "
    "checkpoint is kept. Checkpoints that contain objects are written as without the patch if "
    "own-checkpoint-load, a default patch, needs their bytes. The official fix avoids only the copy in "
    "memory; this patch also writes the file in its own directory and renames it when it is complete.",
    after=("checkpoint-permission-error",),
)
