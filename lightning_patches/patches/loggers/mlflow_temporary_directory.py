"""MLFlowLogger writes no temporary files to the working directory."""

import tempfile
from types import FunctionType, SimpleNamespace
from typing import Any, Callable

from lightning_patches.engine.functions import stock_of
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _scan_and_log_checkpoints(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    stock = stock_of(original)

    def _scan_and_log_checkpoints(self: Any, checkpoint_callback: Any) -> None:
        # The original uses `os` only to get the working directory for a temporary directory.
        names = {**stock.__globals__, "os": SimpleNamespace(getcwd=tempfile.gettempdir)}
        FunctionType(stock.__code__, names)(self, checkpoint_callback)

    return _scan_and_log_checkpoints


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.9.0,<2.5.1",),
    targets=(Target("pytorch.loggers.mlflow:MLFlowLogger._scan_and_log_checkpoints", _scan_and_log_checkpoints),),
    upstream=Upstream(pull_requests=(20642,), commit="eb082b2a08", fixed_in="2.5.1"),
    impact=Impact(
        "MLFlowLogger with log_model=True or 'all' fails, at the latest at the end of training, if the program cannot "
        "write to its working directory.",
        ("MLFlowLogger cannot make a temporary directory",),
        error="PermissionError: [Errno 13] Permission denied: '/...test'",
        frames=("/pytorch/loggers/mlflow.py", "tempfile.py"),
    ),
    note="Temporary files are written to Python's directory for them (TMPDIR or /tmp). If that is not "
    "writable, Python uses the working directory.",
)
