"""Warn when a checkpoint is ranked by the metric of the previous validation."""

from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, steps_of, warn, warning
from lightning_patches.patches.checkpoints import checkpoint_after_own_validation, checkpoint_after_validation


def _on_validation_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def before(self: Any, trainer: Any, *_: Any, **__: Any) -> None:
        if type(self).__module__ != original.__module__ or not self.best_k_models or self._every_n_train_steps < 1:
            return  # a subclass may save in its own way
        step = self._last_global_step_saved
        is_early = 0 < step == steps_of(trainer) and trainer.state.fn == "fit" and _is_validated(self.monitor, trainer)
        if is_early and not self._should_save_on_train_epoch_end(trainer):
            warn(
                "checkpoint-before-validation",
                f"ModelCheckpoint saved step {step} just before the validation of that step, and ranks it by the "
                f"previous value of {self.monitor!r}. Set LIGHTNING_PATCHES=default,20185, or save and validate at "
                "different steps.",
            )

    return observe(original, before=before)


def _is_validated(monitor: Any, trainer: Any) -> bool:
    results = trainer.fit_loop.epoch_loop.val_loop._results
    return any(monitor in results._forked_name(metric, False) for metric in results.values())


PATCH = warning(
    Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint.on_validation_end", _on_validation_end),
    fixes=(checkpoint_after_own_validation, checkpoint_after_validation),
    added="0.3.0",
    affected=(">=2.0.0,<=2.6.6",),
    after=("last-checkpoint-newest",),
)
