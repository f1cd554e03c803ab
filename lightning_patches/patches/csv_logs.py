"""``fabric/loggers/csv_logs.py``: metrics in a CSV file, for Fabric and for the Trainer."""

from __future__ import annotations

from typing import Any, Callable, Optional

from lightning_patches.patch import Impact, Patch, Target, Upstream

_MODULE = "fabric.loggers.csv_logs"
_SAVED = "_saved_rows"


def _flush_without_step(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def log_metrics(self: Any, metrics: Any, step: Optional[int] = None) -> None:
        if step is None:
            step = len(getattr(self._experiment, "metrics", ()))  # none before the first row, and on other ranks
        original(self, metrics, step)

    return log_metrics


def _count_saved(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save(self: Any) -> None:
        rows = len(self.metrics)
        original(self)
        setattr(self, _SAVED, getattr(self, _SAVED, 0) + rows - len(self.metrics))

    return save


def _step_after_saved(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def log_metrics(self: Any, metrics: Any, step: Optional[int] = None) -> None:
        saved = getattr(self._experiment, _SAVED, 0)
        if step is None and saved:
            step = saved + len(self._experiment.metrics)
        original(self, metrics, step)

    return log_metrics


def _without_earlier_run(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __init__(self: Any, log_dir: str) -> None:  # noqa: N807
        original(self, log_dir)
        if self._fs.isfile(self.metrics_file_path):
            self._fs.rm_file(self.metrics_file_path)

    return __init__


PATCHES = (
    Patch(
        name="csv-logger-flush",
        title="Fabric's CSVLogger writes its file even where log_metrics gets no step",
        group="correctness",
        affected=(">=2.0.0,<2.0.5",),
        targets=(Target(f"{_MODULE}:CSVLogger.log_metrics", _flush_without_step),),
        upstream=Upstream(
            issues=(17888,),
            pull_requests=(17942,),
            commit="16c72e85de",
            fixed_in="2.0.5",
            tests=("tests/tests_fabric/loggers/test_csv.py::test_automatic_step_tracking",),
        ),
        impact=Impact(
            "Fabric's CSVLogger without step= writes nothing until finalize() is called: a run that is killed, or "
            "that does not call it, has logged nothing.",
            ("metrics.csv is missing", "CSVLogger does not flush without step"),
        ),
    ),
    Patch(
        name="csv-logger-step",
        title="Fabric's CSVLogger keeps counting steps after writing its file",
        group="correctness",
        affected=(">=2.1.0,<=2.6.6",),
        targets=(
            Target(f"{_MODULE}:_ExperimentWriter.save", _count_saved),
            Target(f"{_MODULE}:CSVLogger.log_metrics", _step_after_saved),
        ),
        upstream=Upstream(issues=(17888,)),
        impact=Impact(
            "Fabric's CSVLogger without step= starts again at step 0 whenever it has written its file, which is after "
            "every 100 rows: the steps in the file repeat themselves, and with flush_logs_every_n_steps=1 all are 0.",
            ("step in metrics.csv starts again at 0", "every row of metrics.csv has step 0"),
        ),
        equivalent_to="log_metrics(..., step=N) with the number of the row, as Lightning 2.0.5 to 2.0.9 count it",
        note="Concerns log_metrics without a step, which happens with Fabric only: the Trainer always gives one.",
        relied_on="Rows with a step of their own, and the first rows of a file, are as before. A script that "
        "tells where the file was written by the steps that start again finds one series of steps instead.",
        relied_on_tests=("tests/patches/test_csv_logger_step.py::test_steps_that_are_given_stay",),
    ),
    Patch(
        name="csv-logger-own-file",
        title="CSVLogger does not append to the file of an earlier run",
        group="correctness",
        affected=(">=2.1.0,<2.2.1",),
        targets=(Target(f"{_MODULE}:_ExperimentWriter.__init__", _without_earlier_run),),
        upstream=Upstream(
            pull_requests=(19446,),
            commit="3fbc29ba21",
            fixed_in="2.2.1",
            tests=(
                "tests/tests_fabric/loggers/test_csv.py::test_append_metrics_file",
                "tests/tests_fabric/loggers/test_csv.py::test_append_columns",
            ),
        ),
        impact=Impact(
            "A CSVLogger with an existing version mixes its rows with those of the earlier run, or ends the run with a "
            "ValueError where the two log different metrics.",
            ("dict contains fields not in fieldnames", "metrics.csv has rows of an earlier run"),
        ),
        default=False,
        note="Opt-in: as in the fixed releases, metrics.csv of the earlier run is deleted, as Lightning's warning "
        "announces. A script that continues a run under the same version, and counts on one file with all rows, "
        "has to take another version.",
    ),
)
