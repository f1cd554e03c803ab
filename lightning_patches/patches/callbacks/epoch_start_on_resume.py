"""Accumulation schedules and SWA work in a run that is resumed within an epoch."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream, name_and_title

_CALLBACKS = ("GradientAccumulationScheduler", "StochasticWeightAveraging")
"""What these do in on_train_epoch_start is not in the checkpoint."""
_HOOK = "on_train_epoch_start"


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any) -> None:
        original(self)
        if self.restarted_mid_epoch:
            callbacks = upstream_module(namespace, "pytorch.callbacks")
            stock = [vars(getattr(callbacks, name))[_HOOK] for name in _CALLBACKS]
            for callback in self.trainer.callbacks:
                if getattr(type(callback), _HOOK) in stock and _HOOK not in vars(callback):
                    callback.on_train_epoch_start(self.trainer, self.trainer.lightning_module)

    return on_run_start


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "the rest of an epoch within which a run is resumed"),
    affected=(">=2.5.0,<=2.6.6",),
    targets=(Target("pytorch.loops.fit_loop:_FitLoop.on_run_start", _on_run_start),),
    upstream=Upstream(),
    impact=Impact(
        "From 2.5.0 on, on_train_epoch_start is not called for the rest of an epoch within which a run is resumed. "
        "GradientAccumulationScheduler then accumulates as in epoch 0 of a run without it, and "
        "StochasticWeightAveraging has neither its learning rate scheduler nor its average.",
        (
            "accumulate_grad_batches is 1 after resuming with GradientAccumulationScheduler",
            "learning rate of StochasticWeightAveraging is not applied after resuming",
        ),
    ),
    note="Equivalent to the run without a break, and to the releases below 2.5.0, which call the hook. Callbacks "
    "derived from these with another on_train_epoch_start, and hooks of the program, are not called: "
    "warn-epoch-start-on-resume warns of those. Programs that could rely on the behavior without the patch: none is "
    "known.",
)
