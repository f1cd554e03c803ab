"""ModelCheckpoint does not delete the checkpoint that training was resumed from."""

import os
from pathlib import Path
from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints._places import ckpt_path_of, directory_of, protocol_of

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"


def _remove_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def remove_checkpoint(self: Any, trainer: Any, filepath: Any) -> None:
        directory = directory_of(self, namespace)
        if not _has_to_stay(filepath, ckpt_path_of(trainer), directory):
            original(self, trainer, filepath)

    return remove_checkpoint


def _has_to_stay(filepath: Any, resumed_from: Any, dirpath: Any) -> bool:
    """True if training was resumed from this local file, or was resumed and the file is outside the directory."""
    if not isinstance(resumed_from, (str, os.PathLike)) or protocol_of(filepath) != "file":
        return False
    path = Path(filepath).absolute()
    if path == Path(resumed_from).absolute():
        return True
    return dirpath is not None and Path(dirpath).absolute() not in path.parents


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "the checkpoint that the run was resumed from is kept"),
    affected=(">=1.8.5.post0,<2.1.3",),
    targets=(Target(f"{_CALLBACK}._remove_checkpoint", _remove_checkpoint),),
    witnesses=(f"{_CALLBACK}._save_last_checkpoint",),
    upstream=Upstream(
        issues=(17189, 16426),
        pull_requests=(18750, 19023),
        commit="b8a96fe5d6",
        fixed_in="2.1.3",
        tests=(
            "tests/tests_pytorch/checkpointing/test_model_checkpoint.py::test_resume_and_old_checkpoint_files_remain",
        ),
        others=((18750, "2.1.0"),),
    ),
    impact=Impact(
        "A resumed run deletes the checkpoint that was passed as ckpt_path, and may delete files of an earlier "
        "run in another directory.",
        ("the checkpoint I resumed from was deleted", "best_model_path of the first run does not exist"),
        consequences=(
            Consequence(
                ("Checkpoint file not found: ...", "Checkpoint at ... not found. Aborting"),
                r"Restored all states from the checkpoint (?:file )?at (?!\w+://)(\S+)",
                "an earlier resumed run has deleted the checkpoint that was passed to it",
                is_sure=True,
            ),
        ),
    ),
    note="2.1.0 to 2.1.2 have the official fix, but with fsspec 2023.10 and later it mistakes local files for "
    "remote ones. Files on remote file systems are deleted as without the patch, as in the official fix.",
    around=("remote-checkpoint-kept-on-resume",),
)
