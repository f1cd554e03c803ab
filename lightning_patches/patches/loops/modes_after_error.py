"""An error or Ctrl+C in an evaluation leaves no module in evaluation mode."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.loops._way_out import after_stage, module_of, named_modules


def _restore(trainer: Any) -> None:
    loop = vars(trainer._active_loop)
    modes, model = loop["_module_mode"].mode if "_module_mode" in loop else {}, module_of(trainer)
    if modes and not model.training:  # otherwise the error came first, and `modes` is of an earlier run
        for name, module in named_modules(model):
            if module.training != modes.get(name, module.training):
                module.training = modes[name]


def _scale_batch_size(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _scale_batch_size(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        # In an evaluation, the trials run the loop that is running, and replace the modes that it restores at its end.
        captured = getattr(getattr(trainer, "_active_loop", None), "__dict__", {}).get("_module_mode")
        modes = captured and dict(captured.mode)
        try:
            return original(trainer, *args, **kwargs)
        finally:
            if captured:
                captured.mode = modes

    return _scale_batch_size


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "training and predictions after an evaluation that ended in an error"),
    affected=(">=2.2.0,<=2.6.6",),
    targets=(
        Target("pytorch.trainer.trainer:Trainer._run_stage", after_stage(_restore)),
        Target("pytorch.tuner.batch_size_scaling:_scale_batch_size", _scale_batch_size),
    ),
    impact=Impact(
        "After an error or Ctrl+C in a validation, test or prediction, or after a batch size search in one, the model "
        "stays in evaluation mode: the next fit trains without dropout and with frozen batch norm.",
        (
            "model stays in eval mode after an exception in validation_step",
            "model is in eval mode after scale_batch_size(method='validate')",
            "no dropout after KeyboardInterrupt in validation",
        ),
        would_tell="that model.training is False after an error in a validation, or after the batch size search",
    ),
    after=("batch-size-finder-loop-state",),
    note="The modes are those before the evaluation, as after an evaluation without an error, and are restored before "
    "on_exception is called. A program that then calls train() or eval() gets the mode that it sets.",
)
