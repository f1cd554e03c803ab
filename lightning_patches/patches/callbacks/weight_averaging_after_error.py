"""After an error or Ctrl+C in a validation, WeightAveraging has put the weights back."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.loops._way_out import Notes, after_stage, module_of

_exchanged = Notes()
"""Callbacks whose average is in the module: True during a validation, False if it was put back after an error."""


def _on_validation_epoch_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_validation_epoch_start(self: Any, trainer: Any, pl_module: Any) -> None:
        _exchanged.take(self)
        original(self, trainer, pl_module)
        if self._average_model is not None:
            _exchanged.add(self, True)

    return on_validation_epoch_start


def _on_validation_epoch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_validation_epoch_end(self: Any, trainer: Any, pl_module: Any) -> None:
        _exchanged.take(self)
        original(self, trainer, pl_module)

    return on_validation_epoch_end


def _swap_models(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _swap_models(self: Any, pl_module: Any) -> None:
        if _exchanged.take(self, True):  # otherwise the program repairs by hand what is repaired
            original(self, pl_module)

    return _swap_models


def _put_back(trainer: Any) -> None:
    for callback in trainer.callbacks:
        owner = next((kind for kind in type(callback).__mro__ if "_swap_models" in vars(kind)), None)
        if owner is not None and owner.__name__ == "WeightAveraging" and _exchanged.find(callback):
            callback._swap_models(module_of(trainer))
            _exchanged.add(callback, False)


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "the weights after a validation that ended in an error, also in a checkpoint"),
    affected=(">=2.6.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.callbacks.weight_averaging:WeightAveraging.on_validation_epoch_start", _on_validation_epoch_start
        ),
        Target("pytorch.callbacks.weight_averaging:WeightAveraging.on_validation_epoch_end", _on_validation_epoch_end),
        Target("pytorch.callbacks.weight_averaging:WeightAveraging._swap_models", _swap_models),
        Target("pytorch.trainer.trainer:Trainer._run_stage", after_stage(_put_back)),
    ),
    impact=Impact(
        "With WeightAveraging or EMAWeightAveraging, an error or Ctrl+C in a validation leaves the averaged weights in "
        "the module. The checkpoint of OnExceptionCheckpoint has the trained weights and the average exchanged.",
        (
            "EMAWeightAveraging leaves the averaged weights in the model after an exception",
            "current_model_state and state_dict are swapped in a checkpoint of OnExceptionCheckpoint",
        ),
        would_tell="that a validation of a run with WeightAveraging ended in an error",
    ),
    after=("metrics-after-inference", "weight-averaging-before-start"),
    note="The weights are exchanged before on_exception is called. If the program then exchanges them itself with "
    "_swap_models, that call does nothing.",
)
