"""Loggers ignore folders whose names contain no version number."""

import os
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.loggers._versions import next_version


def _next(folder: Callable[[Any], Any]) -> Callable[..., Any]:
    def build(original: Callable[..., int], namespace: str) -> Callable[..., int]:
        def get_next_version(self: Any) -> int:
            try:
                return original(self)
            except ValueError:  # a name such as version_x
                return next_version(getattr(self, "_fs", None), folder(self))

        return get_next_version

    return build


def _below_root(self: Any) -> Any:
    return os.path.join(self._root_dir, self.name)


def _root(self: Any) -> Any:
    return self.root_dir


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.1.1",),
    targets=(
        Target("fabric.loggers.csv_logs:CSVLogger._get_next_version", _next(_root), before="2.0.6"),
        Target("fabric.loggers.csv_logs:CSVLogger._get_next_version", _next(_below_root), since="2.0.6"),
        Target("fabric.loggers.tensorboard:TensorBoardLogger._get_next_version", _next(_below_root)),
        Target("pytorch.loggers.tensorboard:TensorBoardLogger._get_next_version", _next(_root)),
        Target("pytorch.loggers.csv_logs:CSVLogger._get_next_version", _next(_root), before="1.9.0"),
    ),
    upstream=Upstream(
        pull_requests=(18897,),
        commit="98685c332b",
        fixed_in="2.1.1",
        tests=("tests/tests_fabric/loggers/test_csv.py::test_automatic_versioning",),
    ),
    impact=Impact(
        "If the folder of the runs contains a folder whose name starts with version_ but has no number, such "
        "as version_best, TensorBoardLogger, CSVLogger and the Trainer fail.",
        ("ValueError: invalid literal for int() with base 10: '...'", "in _get_next_version"),
        error="ValueError: invalid literal for int() with base 10: 'best'",
    ),
    around=("csv-logger-relative-directory",),
)
