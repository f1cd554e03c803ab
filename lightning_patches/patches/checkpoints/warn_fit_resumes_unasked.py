"""Warn when fit without ckpt_path resumes, because of the callback OnExceptionCheckpoint."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title


def _parse_ckpt_path(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def parse_ckpt_path(self: Any, state_fn: Any, ckpt_path: Any, *args: Any, **kwargs: Any) -> Any:
        path = original(self, state_fn, ckpt_path, *args, **kwargs)
        if ckpt_path is None and path is not None and state_fn.value == "fit":
            saves = upstream_module(namespace, "pytorch.callbacks.on_exception_checkpoint").OnExceptionCheckpoint
            is_slurms = str(path).replace("\\", "/").rpartition("/")[2].startswith("hpc_ckpt_")
            if not is_slurms and any(isinstance(each, saves) for each in self.trainer.callbacks):
                notices.warn_once(
                    "fit-resumes-unasked",
                    f"fit continues the run of {str(path)!r}, although you passed no ckpt_path: with the callback "
                    "OnExceptionCheckpoint, fit looks for the last checkpoint. For a new run, remove this file or "
                    "save to another directory. To continue, pass ckpt_path='last'.",
                )
        return path

    return parse_ckpt_path


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector._parse_ckpt_path", _parse_ckpt_path
        ),
    ),
    upstream=Upstream(issues=(19827,)),
    impact=Impact(
        "With the callback OnExceptionCheckpoint, fit without ckpt_path continues an earlier run whose checkpoint it "
        "finds. Lightning warns of something else: that fit was called without a model.",
        (
            "training with OnExceptionCheckpoint starts at a later step without ckpt_path",
            "fit resumes from on_exception.ckpt although no ckpt_path was given",
        ),
    ),
    note="This patch fixes nothing: it warns once. Scripts that are started again after a failure rely on this.",
)
