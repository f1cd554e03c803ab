"""A run whose validation set has no length can be resumed."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_LOOP = "pytorch.loops.evaluation_loop:_EvaluationLoop"


def _increment_progress(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def increment_progress_to_evaluation_end(self: Any) -> None:
        try:
            original(self)
        except OverflowError:
            if float("inf") not in self.max_batches:
                raise
            # A loader without a length has no last batch, so the progress can't be set to it.

    return increment_progress_to_evaluation_end


PATCH = Patch(
    group="crash",
    affected=(">=2.5.0,<2.5.1",),
    targets=(Target(f"{_LOOP}.increment_progress_to_evaluation_end", _increment_progress),),
    upstream=Upstream(
        issues=(20565,),
        pull_requests=(20624,),
        commit="1278308f48",
        fixed_in="2.5.1",
        tests=("tests/tests_pytorch/checkpointing/test_model_checkpoint.py::test_load_with_inf_data_loader",),
    ),
    impact=Impact(
        "Resuming fails if the validation data is a stream: an IterableDataset without a length.",
        ("OverflowError: cannot convert float infinity to integer",),
        error="OverflowError: cannot convert float infinity to integer",
        frames=("/loops/",),
    ),
)
