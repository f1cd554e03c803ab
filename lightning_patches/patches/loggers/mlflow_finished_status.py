"""MLFlowLogger accepts the status that a SLURM requeue passes."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _finalize(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def finalize(self: Any, status: str = "success") -> None:
        original(self, "success" if status == "finished" else status)

    return finalize


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=1.8.0,<1.9.0",),
    targets=(Target("pytorch.loggers.mlflow:MLFlowLogger.finalize", _finalize),),
    upstream=Upstream(pull_requests=(16340,), fixed_in="1.9.0"),
    impact=Impact(
        "When SLURM signals that the job's time is over, a run with MLFlowLogger ends in an error: no checkpoint is "
        "saved, and the job is not requeued.",
        ("Could not get run status corresponding to string finished",),
        error="Exception: Could not get run status corresponding to string finished. Valid run status strings: ...",
    ),
)
