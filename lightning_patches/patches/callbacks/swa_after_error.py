"""After an error in a run with StochasticWeightAveraging, the Trainer can train again."""

from __future__ import annotations

from typing import Any

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.loops._way_out import after_stage


def _undo(trainer: Any) -> None:
    """Undo the changes that on_train_end would undo."""
    loop = trainer.fit_loop
    for callback in trainer.callbacks if trainer.state.fn == "fit" else ():
        state = object.__getattribute__(callback, "__dict__")
        if loop._skip_backward and {"_swa_epoch_start", "momenta", "_max_epochs"} <= state.keys():
            loop._skip_backward = False  # of the epoch that updates batch norm
            loop.max_epochs -= loop.max_epochs == state["_max_epochs"] + 1
            trainer.accumulate_grad_batches = state["_accumulate_grad_batches"]
            loop.max_batches -= 1
            for module, momentum in state["momenta"].items():
                module.momentum = momentum


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "a fit after one with StochasticWeightAveraging that ended in an error"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.trainer.trainer:Trainer._run_stage", after_stage(_undo)),),
    impact=Impact(
        "After an error or Ctrl+C in the last epoch of StochasticWeightAveraging, which updates batch norm, the next "
        "fit of the Trainer trains nothing, batch norm has no momentum, and accumulate_grad_batches and max_epochs are "
        "wrong.",
        (
            "fit does not update weights after an exception with StochasticWeightAveraging",
            "batch norm momentum is None",
        ),
        would_tell="that a run with StochasticWeightAveraging ended in an error",
    ),
    after=("metrics-after-inference", "weight-averaging-after-error"),
    note="Batch norm keeps the statistics that the interrupted epoch has computed. After an error in an earlier epoch, "
    "max_epochs stays one higher, since a program may subtract one itself.",
)
