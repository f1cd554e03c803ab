"""The link last.ckpt stays valid when its folder is moved."""

import os
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _link_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def link_checkpoint(trainer: Any, filepath: str, linkpath: str) -> None:
        if os.name != "nt":  # Windows may copy the file instead, and needs the full path
            filepath = os.path.relpath(filepath, os.path.dirname(linkpath))
        original(trainer, filepath, linkpath)

    return link_checkpoint


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("files", "last.ckpt is a relative link"),
    affected=(">=2.1.0,<2.1.4",),
    targets=(Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint._link_checkpoint", _link_checkpoint),),
    upstream=Upstream(
        pull_requests=(19303,),
        commit="d02009af76",
        fixed_in="2.1.4",
        tests=(
            "tests/tests_pytorch/checkpointing/test_model_checkpoint.py::test_model_checkpoint_link_checkpoint_relative_path",
        ),
    ),
    impact=Impact(
        "After the folder of a run is moved, or mounted at another path, last.ckpt still points to the old "
        "path: resuming from it raises FileNotFoundError, or loads another run's checkpoint.",
        ("last.ckpt is a broken link", "last.ckpt points to the old folder"),
    ),
    opt_in="users who move the folder of a run or mount it at another path",
    signs=("save_last",),
    note="Opt-in because a relative link breaks if a program moves the link alone.",
)
