"""CSVLogger with a relative directory, and Fabric's CSVLogger, don't overwrite version_0."""

import os
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.loggers._versions import next_version


def _get_next_version(original: Callable[..., int], namespace: str) -> Callable[..., int]:
    def get_next_version(self: Any) -> int:
        version = original(self)
        folder = os.path.join(self._root_dir, self.name)
        fs = getattr(self, "_fs", None)
        if version == 0 and (os.path if fs is None else fs).isdir(folder):
            # The original removes the directory's name from listed paths, which may start differently. Fabric's
            # CSVLogger lists the parent directory. So neither finds existing versions.
            version = next_version(fs, folder)
        return version

    return get_next_version


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("files", "each run has its own folder"),
    affected=(">=1.9.0,<2.0.6",),
    targets=(Target("fabric.loggers.csv_logs:CSVLogger._get_next_version", _get_next_version),),
    upstream=Upstream(
        pull_requests=(17986, 17139),
        commit="356f5d0c65",
        fixed_in="2.0.6",
        tests=("tests/tests_fabric/loggers/test_csv.py::test_file_logger_automatic_versioning_relative_root_dir",),
        others=((17139, "2.0.3"),),
    ),
    impact=Impact(
        "Fabric's CSVLogger always writes to version_0, so the metrics of the previous run are lost. Below "
        "2.0.3 the Trainer's CSVLogger does the same with a relative or remote directory, such as "
        "CSVLogger('logs').",
        ("metrics.csv of the last run is gone", "CSVLogger always writes to version_0"),
    ),
    opt_in="users who use Fabric's CSVLogger, or the Trainer's CSVLogger with a relative directory",
    signs=("CSVLogger",),
    note="Opt-in because a script may expect the latest run in version_0.",
    after=("logger-version-folder-names",),
)
