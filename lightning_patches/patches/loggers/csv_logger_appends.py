"""CSVLogger appends new rows to its file instead of rewriting the file."""

from __future__ import annotations

import csv
import os
from typing import Any, Callable, NamedTuple

from lightning_patches.patch import Impact, Patch, Target, Upstream

_WRITTEN = "_lightning_patches_written"


class _Written(NamedTuple):
    """What the last save wrote: the list of rows, the number of written rows, the columns, and the file size."""

    rows: list[dict[str, Any]]
    length: int
    columns: dict[str, None]
    size: int


def _save(original: Callable[..., None], namespace: str, writes_hparams: bool = False) -> Callable[..., None]:
    def save(self: Any) -> None:
        # `Target.stock` can't check this, because the class is fsspec's.
        fs = getattr(self, "_fs", None)  # none in 1.x
        if fs is not None and type(fs).__module__ != "fsspec.implementations.local":
            return original(self)
        path, rows, written = self.metrics_file_path, self.metrics, getattr(self, _WRITTEN, None)
        new = rows[written.length :] if written and written.rows is rows and written.size == _size(path) else None
        if written and new and len(rows) > written.length and all(row.keys() <= written.columns.keys() for row in new):
            columns = written.columns
            if writes_hparams:
                self.metrics = []
                try:
                    original(self)  # without rows, it writes only the hyperparameters
                finally:
                    self.metrics = rows
            with (open if fs is None else fs.open)(path, "a", newline="") as file:
                csv.DictWriter(file, fieldnames=list(columns)).writerows(new)
        else:
            original(self)
            columns = dict.fromkeys(name for row in rows for name in row)
        setattr(self, _WRITTEN, _Written(rows, len(rows), columns, _size(path)))
        return None

    return save


def _save_of_1_8(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return _save(original, namespace, writes_hparams=True)


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.isfile(path) else -1


PATCH = Patch(
    added="0.2.0",
    group="performance",
    affected=(">=1.8.0,<2.1.0",),
    targets=(
        Target("fabric.loggers.csv_logs:_ExperimentWriter.save", _save),
        Target("pytorch.loggers.csv_logs:ExperimentWriter.save", _save_of_1_8, before="1.9.0"),
    ),
    upstream=Upstream(
        pull_requests=(18567,),
        commit="69119b068a",
        fixed_in="2.1.0",
        tests=("tests/tests_fabric/loggers/test_csv.py::test_append_metrics_file",),
    ),
    impact=Impact(
        "With CSVLogger, each logged row rewrites all earlier rows: the longer a run, the slower it gets.",
        ("CSVLogger gets slower and slower", "metrics.csv is written again at every step"),
    ),
    note="The rows stay in memory, as in all releases below 2.1.0. The whole file is written again if a new "
    "column appears, if another program changed the file, and on remote file systems. If a program "
    "changes a row of logger.experiment.metrics that is already written, the change does not reach the "
    "file.",
    after=("csv-logger-hparams-once",),
)
