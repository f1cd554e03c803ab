"""``pytorch/callbacks/model_checkpoint.py``: which checkpoints are kept, and what they are ranked by."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"


def _remove_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def remove_checkpoint(self: Any, trainer: Any, filepath: Any) -> None:
        if not _has_to_stay(filepath, trainer.ckpt_path, self.dirpath):
            original(self, trainer, filepath)

    return remove_checkpoint


def _has_to_stay(filepath: Any, resumed_from: Any, dirpath: Any) -> bool:
    """Whether a local file is the one that training was resumed from, or lies outside of the callback's directory."""
    if _protocol(filepath) != "file":
        return False
    path = Path(filepath).absolute()
    if resumed_from is not None and path == Path(resumed_from).absolute():
        return True
    return dirpath is not None and Path(dirpath).absolute() not in path.parents


def _remove_remote(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def remove_checkpoint(self: Any, trainer: Any, filepath: Any) -> None:
        if not _has_to_stay_there(str(filepath), trainer.ckpt_path, self.dirpath):
            original(self, trainer, filepath)

    return remove_checkpoint


def _has_to_stay_there(filepath: str, resumed_from: Any, dirpath: Any) -> bool:
    """The same of a file that is not on a local disk. Only compares names, asks no server."""
    if _protocol(filepath) == "file":
        return False
    if resumed_from is not None and _place(resumed_from) == _place(filepath):
        return True
    if dirpath is None:
        return False
    (protocol, path), (where, directory) = _place(filepath), _place(dirpath)
    return protocol != where or not path.startswith(f"{directory}/")


def _place(path: Any) -> tuple[str, str]:
    """Protocol, and path below it without a trailing slash."""
    from fsspec import get_filesystem_class  # type: ignore[import-untyped]

    protocol = _protocol(path)
    return protocol, str(get_filesystem_class(protocol)._strip_protocol(str(path))).rstrip("/")


def _protocol(path: Any) -> str:
    from fsspec.utils import get_protocol  # type: ignore[import-untyped]

    return str(get_protocol(str(path)))


PATCHES = (
    Patch(
        name="checkpoint-kept-on-resume",
        title="ModelCheckpoint does not delete the checkpoint that training was resumed from",
        group="correctness",
        affected=(">=2.0.0,<2.1.3",),
        targets=(Target(f"{_CALLBACK}._remove_checkpoint", _remove_checkpoint),),
        witnesses=(f"{_CALLBACK}._save_last_checkpoint",),
        upstream=Upstream(
            issues=(17189, 16426),
            pull_requests=(18750, 19023),
            commit="b8a96fe5d6",
            fixed_in="2.1.3",
            tests=(
                "tests/tests_pytorch/checkpointing/test_model_checkpoint.py"
                "::test_resume_and_old_checkpoint_files_remain",
            ),
        ),
        impact=Impact(
            "After a resumed run the checkpoint that was passed as ckpt_path is gone, and so may be files of an "
            "earlier run in another directory.",
            ("the checkpoint I resumed from was deleted", "best_model_path of the first run does not exist"),
        ),
        note="2.1.0 to 2.1.2 have the official fix, but it takes local files for remote ones with fsspec 2023.10 and "
        "later. Files that are not on a local disk are removed as before, as in the official fix.",
    ),
    Patch(
        name="remote-checkpoint-kept-on-resume",
        title="ModelCheckpoint does not delete the remote checkpoint that training was resumed from",
        group="correctness",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(Target(f"{_CALLBACK}._remove_checkpoint", _remove_remote),),
        upstream=Upstream(issues=(21813,)),
        impact=Impact(
            "After a resumed run with checkpoints on s3, gs or another remote file system, the checkpoint that was "
            "passed as ckpt_path is gone, even where it belongs to another run.",
            ("the checkpoint I resumed from was deleted from the bucket", "previous run's checkpoint is deleted"),
        ),
        equivalent_to="save_top_k=-1 in the resumed run, as far as the files of the earlier run are concerned",
        note="Files of the run itself are removed as before, so that save_top_k keeps its meaning.",
    ),
)
