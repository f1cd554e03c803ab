"""MLFlowLogger passes checkpoint paths as strings, as MLflow requires."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


class _WithTextPaths:
    """A proxy of the logger and its client, with the attributes that the original uses."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)

    @property
    def experiment(self) -> _WithTextPaths:
        self._client = self._logger.experiment  # starts the run; the original reads its id next
        return self

    def log_artifact(self, run_id: str, path: str, artifact_path: Any) -> None:
        self._client.log_artifact(run_id, path, artifact_path.as_posix())

    def log_artifacts(self, run_id: str, path: str, artifact_path: Any) -> None:
        self._client.log_artifacts(run_id, path, artifact_path.as_posix())


def _scan_and_log_checkpoints(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _scan_and_log_checkpoints(self: Any, checkpoint_callback: Any) -> None:
        original(_WithTextPaths(self), checkpoint_callback)

    return _scan_and_log_checkpoints


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.5.1,<2.6.0",),
    targets=(Target("pytorch.loggers.mlflow:MLFlowLogger._scan_and_log_checkpoints", _scan_and_log_checkpoints),),
    upstream=Upstream(issues=(20932, 20664, 20822), pull_requests=(20669,), fixed_in="2.6.0"),
    impact=Impact(
        "MLFlowLogger with log_model=True or 'all' raises an error when it uploads a checkpoint, at the latest at the "
        "end of training, and no checkpoint is stored in MLflow.",
        ("Invalid artifact path", "sequence item 0: expected str instance, PosixPath found"),
        error="MlflowException: Invalid artifact path: ...",
    ),
    note="checkpoint_path_prefix still works; 2.6.0 removed it together with the bug.",
)
