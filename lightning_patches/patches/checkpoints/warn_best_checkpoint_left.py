"""Warn when a resumed ModelCheckpoint does not know its newest files."""

import os
import re
from typing import Any, Callable

from lightning_patches.patch import Impact, Target, Upstream
from lightning_patches.patches._warning import observe, warn, warning
from lightning_patches.patches.checkpoints._places import directory_of

_CONNECTOR = "pytorch.trainer.connectors.checkpoint_connector"


def _restore_callbacks(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def after(_: None, __: None, self: Any) -> None:
        resumed = getattr(self, "_ckpt_path", None) or getattr(self, "resume_checkpoint_path", None)
        if not resumed or self.trainer.state.fn != "fit":
            return
        for callback in self.trainer.callbacks:
            directory = directory_of(callback, namespace)
            if directory is not None:
                _warn_of_unknown_files(callback, directory, str(resumed))

    return observe(original, after=after)


def _warn_of_unknown_files(callback: Any, directory: str, resumed: str) -> None:
    missing = [path for path in callback.best_k_models if not os.path.exists(path)]
    if not missing or not os.path.isdir(directory) or not os.path.isfile(resumed):
        return
    known = {os.path.basename(path) for path in callback.best_k_models}
    shapes = {_without_numbers(os.path.basename(path)) for path in missing}
    unknown = [
        entry.name
        for entry in os.scandir(directory)
        if entry.name not in known
        and _without_numbers(entry.name) in shapes
        and entry.stat().st_mtime >= os.path.getmtime(resumed)
    ]
    if unknown:
        warn(
            "best-checkpoint-left",
            f"{os.path.basename(resumed)} was saved before ModelCheckpoint(monitor={callback.monitor!r}) saved "
            f"{', '.join(sorted(unknown))}: it does not compare new checkpoints with these files, and never deletes "
            "them. Put a ModelCheckpoint with a monitor before those without one in the list of callbacks, or set "
            "LIGHTNING_PATCHES=default,monitored-checkpoint-first. Delete files that you don't need.",
            stacklevel=5,
        )


def _without_numbers(name: str) -> str:
    return re.sub(r"-?\d+(\.\d+)?", "", name)


PATCH = warning(
    Target(f"{_CONNECTOR}:CheckpointConnector.restore_callbacks", _restore_callbacks, before="2.0.0"),
    Target(f"{_CONNECTOR}:_CheckpointConnector.restore_callbacks", _restore_callbacks, since="2.0.0"),
    added="0.3.0",
    affected=(">=1.8.0,<=2.6.6",),
    upstream=Upstream(issues=(18687,)),
    impact=Impact(
        "A run that resumes from a checkpoint that was saved before the newest best one never deletes that file: "
        "the resumed ModelCheckpoint has the list of files from before."
    ),
    note="The opt-in patch monitored-checkpoint-first prevents the bug in the runs that save the checkpoints.",
)
