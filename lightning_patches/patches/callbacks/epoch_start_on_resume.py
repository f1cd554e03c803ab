"""Accumulation schedules and SWA work in a run that is resumed within an epoch."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target

_CALLBACKS = ("GradientAccumulationScheduler", "StochasticWeightAveraging")
"""Callbacks whose on_train_epoch_start sets state that is not in the checkpoint."""
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
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "the rest of the epoch within which a run is resumed"),
    affected=(">=2.5.0,<=2.6.6",),
    targets=(Target("pytorch.loops.fit_loop:_FitLoop.on_run_start", _on_run_start),),
    impact=Impact(
        "If a run is resumed within an epoch, 2.5.0 and later don't call on_train_epoch_start for the rest of "
        "that epoch. GradientAccumulationScheduler then doesn't set accumulate_grad_batches, and "
        "StochasticWeightAveraging has neither its learning rate scheduler nor its average.",
        (
            "accumulate_grad_batches is 1 after resuming with GradientAccumulationScheduler",
            "learning rate of StochasticWeightAveraging is not applied after resuming",
        ),
    ),
    opt_in="users who resume within an epoch with GradientAccumulationScheduler or StochasticWeightAveraging",
    signs=("ckpt_path GradientAccumulationScheduler", "ckpt_path StochasticWeightAveraging"),
    note="Opt-in because programs call the hook themselves. The resumed run equals a run without the "
    "interruption. Releases below 2.5.0 call the hook. The patch does not call hooks of the program, or "
    "subclasses of these two callbacks that override on_train_epoch_start: the patch "
    "warn-resumed-run warns about them.",
)
