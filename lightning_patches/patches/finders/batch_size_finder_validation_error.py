"""The batch size finder continues after it ran out of memory in a trial's validation."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.finders.tuner_cleanup_on_error import modules


def _try_loop_run(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def try_loop_run(trainer: Any, params: dict[str, Any]) -> None:
        state: Any = getattr(trainer, "state", None)
        stage = getattr(state, "stage", None)
        modes = (
            [(each, each.training) for each in modules(trainer._accelerator_connector.strategy._lightning_module)]
            if stage is not None
            else []
        )
        try:
            original(trainer, params)
        except BaseException:
            if stage is not None and state.stage is not stage:  # the error interrupted the trial's validation
                state.stage = stage
                for each, training in modes:
                    each.training = training
            raise

    return try_loop_run


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.tuner.batch_size_scaling:_try_loop_run", _try_loop_run),),
    upstream=Upstream(issues=(18985, 18114)),
    impact=Impact(
        "If validation runs out of memory, or fails, in a trial of the batch size finder in fit, the finder ends in a "
        "KeyError instead of trying a smaller size, or of showing the error.",
        ("KeyError: 'limit_eval_batches'", "scale_batch_size fails with a KeyError in its evaluation loop"),
        error="KeyError: 'limit_eval_batches'",
        frames=("/tuner/batch_size_scaling.py",),
    ),
    note="After the error, each module returns to the mode that it had at the start of the trial. Otherwise the next "
    "trial and the training would run in evaluation mode.",
)
