"""Fabric's CSVLogger continues its step count after it writes its file."""

from typing import Any, Callable, Optional

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches._warning import Notes

_MODULE = "fabric.loggers.csv_logs"

_saved = Notes()
"""Number of rows that each writer has written and dropped from memory."""


def _count_saved(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save(self: Any) -> None:
        rows = len(self.metrics)
        original(self)
        _saved.add(self, _saved.find(self, 0) + rows - len(self.metrics))

    return save


def _step_after_saved(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def log_metrics(self: Any, metrics: Any, step: Optional[int] = None) -> None:
        if step is None:
            experiment = vars(self).get("_experiment")  # a subclass may have another experiment, without this attribute
            saved = _saved.find(experiment, 0)
            step = saved + len(experiment.metrics) if saved else None
        original(self, metrics, step)

    return log_metrics


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "the steps in metrics.csv"),
    affected=(">=2.1.0,<=2.6.6",),
    targets=(
        Target(f"{_MODULE}:_ExperimentWriter.save", _count_saved),
        Target(f"{_MODULE}:CSVLogger.log_metrics", _step_after_saved),
    ),
    upstream=Upstream(issues=(17888,)),
    impact=Impact(
        "Fabric's CSVLogger without step= starts again at step 0 each time it writes its file, which is every 100 "
        "rows. With flush_logs_every_n_steps=1, all steps are 0.",
        ("step in metrics.csv starts again at 0", "every row of metrics.csv has step 0"),
    ),
    note="The patch affects only log_metrics without a step, which occurs only with Fabric: the Trainer always passes "
    "a step. Rows with an explicit step, and the rows before the first write, are unchanged. A script that detects "
    "writes by the restarting steps now finds a single series of steps. Without the patch, call "
    "log_metrics(..., step=N) with the number of the row, as Lightning 2.0.5 to 2.0.9 count it.",
)
