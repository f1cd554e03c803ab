"""CSVLogger does not append to the file of an earlier run."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _without_earlier_run(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __init__(self: Any, log_dir: str) -> None:  # noqa: N807
        original(self, log_dir)
        if self._fs.isfile(self.metrics_file_path):
            self._fs.rm_file(self.metrics_file_path)

    return __init__


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "metrics.csv of an earlier run is replaced"),
    affected=(">=2.1.0,<2.2.1",),
    targets=(Target("fabric.loggers.csv_logs:_ExperimentWriter.__init__", _without_earlier_run),),
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
        "A CSVLogger with an existing version mixes its rows with those of the earlier run, or ends the run "
        "with a ValueError if the two runs log different metrics.",
        ("dict contains fields not in fieldnames", "metrics.csv has rows of an earlier run"),
        error="ValueError: dict contains fields not in fieldnames: '...'",
    ),
    opt_in="users who run a script again with the same version of CSVLogger and want only the rows of the last run",
    signs=("CSVLogger version",),
    note="Opt-in because metrics.csv of the earlier run is deleted, as in the fixed releases and as "
    "Lightning's warning announces. A script that continues a run under the same version and expects one "
    "file with all rows must use another version.",
    around=("csv-logger-step",),
)
