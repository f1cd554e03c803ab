"""CSVLogger keeps the rows of an earlier run with the same version."""

import csv
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target


def _check_log_dir_exists(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def check_log_dir_exists(self: Any) -> None:
        if not self._fs.isfile(self.metrics_file_path):
            return original(self)
        with self._fs.open(self.metrics_file_path, "r", newline="") as file:
            header = next(csv.reader(file), [])
        self.metrics_keys = sorted(header)  # the writer expects sorted columns
        if header != self.metrics_keys:
            self._rewrite_with_new_header(self.metrics_keys)
        return None

    return check_log_dir_exists


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "metrics.csv has the rows of earlier runs, too"),
    affected=(">=2.2.1,<=2.6.6",),
    targets=(Target("fabric.loggers.csv_logs:_ExperimentWriter._check_log_dir_exists", _check_log_dir_exists),),
    impact=Impact(
        "A resumed run with the same version of CSVLogger deletes metrics.csv: the rows from before the resume are "
        "lost.",
        ("metrics.csv loses the epochs before the resume", "CSVLogger deletes metrics.csv of the interrupted run"),
    ),
    opt_in="users who resume runs with the same name and version of CSVLogger",
    signs=("CSVLogger",),
    note="Opt-in because a script that is run again with the same version counts on a new file. The rows that the "
    "interrupted run logged after its checkpoint stay, so their steps occur twice. Reported by users of rf-detr "
    "(issue 1321 of that project).",
)
