"""CSVLogger writes hparams.yaml when hyperparameters change, not with every row of metrics."""

import csv
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_WRITTEN = "_lightning_patches_hparams"


def _save(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_rows(self: Any) -> None:
        super(upstream_module(namespace, "pytorch.loggers.csv_logs").ExperimentWriter, self).save()

    return _saving(original, save_rows)


def _save_of_1_8(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_rows(self: Any) -> None:
        if self.metrics:
            with open(self.metrics_file_path, "w", newline="") as file:
                writer = csv.DictWriter(file, list(dict.fromkeys(name for row in self.metrics for name in row)))
                writer.writeheader()
                writer.writerows(self.metrics)

    return _saving(original, save_rows)


def _saving(original: Callable[..., None], save_rows: Callable[[Any], None]) -> Callable[..., None]:
    def save(self: Any) -> None:
        now = _frozen([self.log_dir, self.NAME_HPARAMS_FILE, self.hparams])
        if now is not None and now == getattr(self, _WRITTEN, None):
            save_rows(self)
            return
        original(self)
        setattr(self, _WRITTEN, now)

    return save


def _frozen(value: Any) -> Any:
    """Return an immutable copy of the value and its types; ``None`` if it contains objects other than plain values."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return kind, value
    if kind is float:
        return kind, value.hex()  # hex() distinguishes 0.0 from -0.0, and gives equal values for NaN
    if kind is dict:
        value = [part for item in value.items() for part in item]
    elif kind not in (list, tuple):
        return None
    parts = tuple(_frozen(part) for part in value)
    return None if None in parts else (kind, parts)


PATCH = Patch(
    added="0.2.0",
    group="performance",
    changes_results=Effect("files", "hparams.yaml is not rewritten unless hyperparameters change"),
    affected=(">=1.8.0,<2.5.1",),
    targets=(
        Target("pytorch.loggers.csv_logs:ExperimentWriter.save", _save, since="1.9.0"),
        Target("pytorch.loggers.csv_logs:ExperimentWriter.save", _save_of_1_8, before="1.9.0"),
    ),
    upstream=Upstream(
        pull_requests=(20594,),
        commit="1f5add327f",
        fixed_in="2.5.1",
        tests=("tests/tests_pytorch/loggers/test_csv.py::test_log_hyperparams",),
    ),
    impact=Impact(
        "With CSVLogger, each row of metrics rewrites hparams.yaml, which gets slow with many hyperparameters.",
        ("CSVLogger is slow with many hyperparameters", "hparams.yaml is written at every step"),
    ),
    note="The file is still written with the first row of metrics and after each change of the "
    "hyperparameters. If hyperparameters contain objects other than numbers, strings, lists and dicts, "
    "the file is written with every row, because changes cannot be detected. A deleted file is written "
    "again at the next change.",
)
