"""ckpt_path='last' finds the last checkpoint on remote file systems."""

import os
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _find_last_checkpoints(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def find_last_checkpoints(self: Any, trainer: Any) -> Any:
        found = original(self, trainer)
        directory = str(self._ModelCheckpoint__resolve_ckpt_dir(trainer))
        if "://" not in directory:
            return found
        try:
            for path in found:
                self._fs.modified(path)  # Lightning needs it to choose the newest checkpoint
        except NotImplementedError:
            return found
        # The listing returns paths without the protocol, and Lightning would look for them on the local disk.
        return {f"{directory.rstrip('/')}/{os.path.basename(path)}" for path in found}

    return find_last_checkpoints


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "a run with ckpt_path='last' continues instead of starting from the beginning"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.callbacks.model_checkpoint:ModelCheckpoint._find_last_checkpoints",
            _find_last_checkpoints,
            stock=("self._find_last_checkpoints",),
        ),
    ),
    upstream=Upstream(issues=(18261, 17912), pull_requests=(21936,)),
    impact=Impact(
        "With checkpoints on S3, Google Cloud Storage or another remote file system, fit(ckpt_path='last') finds no "
        "checkpoint, warns, and starts from the beginning.",
        (
            '(ckpt_path="last") is set, but there is no last checkpoint available',
            "ckpt_path='last' does not find the checkpoint on S3 or GCS",
        ),
        would_tell="where the checkpoints are. It is this bug if they are on a remote file system (s3://, gs://, "
        "memory://)",
    ),
    after=("last-checkpoint-by-extension",),
    opt_in="users who resume with ckpt_path='last' from S3, GCS or another remote file system",
    note="Opt-in because programs continue from the newest file themselves, and jobs that are started again begin anew "
    "without the patch. File systems without modification times, and subclasses that find the files themselves, "
    "are unchanged. To start from the beginning, omit ckpt_path. Without the patch, pass the full path of the "
    "last checkpoint.",
)
