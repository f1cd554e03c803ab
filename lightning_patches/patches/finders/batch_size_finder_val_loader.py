"""Validation after the batch size finder uses all of its batches."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.finders._loops import val_source


def _reload_val_loader(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _reset_dataloaders(trainer: Any) -> None:
        original(trainer)
        source = val_source(trainer._active_loop)
        if source is None or not source.is_defined():
            return
        val_loop = trainer.fit_loop.epoch_loop.val_loop
        val_loop._combined_loader = None
        stage = trainer.state.stage
        trainer.validating = True  # below 2.1.0 the loop uses the limit for the trainer's stage
        try:
            val_loop.setup_data()
        finally:
            trainer.state.stage = stage

    return _reset_dataloaders


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "validation uses all of its batches"),
    affected=(">=2.0.0,<2.1.1",),
    targets=(Target("pytorch.tuner.batch_size_scaling:_reset_dataloaders", _reload_val_loader),),
    upstream=Upstream(
        issues=(18394,),
        pull_requests=(18854,),
        commit="e50b68aae3",
        fixed_in="2.1.1",
        tests=("tests/tests_pytorch/tuner/test_scale_batch_size.py::test_batch_size_finder_callback_val_batches",),
    ),
    impact=Impact(
        "With the BatchSizeFinder callback, each validation during training is cut to steps_per_trial batches, "
        "and uses the batch size of the first trial.",
        ("validation stops after steps_per_trial batches",),
    ),
)
