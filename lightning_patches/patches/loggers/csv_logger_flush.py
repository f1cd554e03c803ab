"""Fabric's CSVLogger writes its file even if log_metrics gets no step."""

from typing import Any, Callable, Optional

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


def _flush_without_step(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def log_metrics(self: Any, metrics: Any, step: Optional[int] = None) -> None:
        original(self, metrics, step)
        rows = getattr(self._experiment, "metrics", None) if step is None else None  # None on other ranks
        if rows and len(rows) % self._flush_logs_every_n_steps == 0:
            self.save()

    return log_metrics


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "rows of metrics.csv that would otherwise never be written"),
    affected=(">=1.9.0,<2.0.5",),
    targets=(Target("fabric.loggers.csv_logs:CSVLogger.log_metrics", _flush_without_step),),
    upstream=Upstream(
        issues=(17888,),
        pull_requests=(17942,),
        commit="16c72e85de",
        fixed_in="2.0.5",
        tests=("tests/tests_fabric/loggers/test_csv.py::test_automatic_step_tracking",),
    ),
    impact=Impact(
        "Fabric's CSVLogger without step= writes nothing until finalize() is called: a run that is killed, or "
        "does not call it, loses all logged rows.",
        ("metrics.csv is missing", "CSVLogger does not flush without step"),
        consequences=(
            Consequence(
                ("No such file or directory: ... metrics.csv",),
                r"version_\d+[/\\]metrics\.csv",
                "Fabric's CSVLogger may have written nothing yet",
            ),
        ),
    ),
)
