"""A checkpoint that is due just before a validation uses that validation's metric."""

import inspect
from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"

WAITS = "_defer_save_until_validation"
"""Name of the attribute in 2.5.5 and later: the save of a step is deferred until the next validation."""


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        if not is_to_wait(self, trainer):
            original(self, trainer, *args, **kwargs)
        else:
            setattr(self, WAITS, True)

    return on_train_batch_end


def _on_validation_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_validation_end(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        if vars(self).pop(WAITS, False) and not self._should_skip_saving_checkpoint(trainer):
            candidates = self._monitor_candidates(trainer)
            if self.monitor in candidates:
                self._save_topk_checkpoint(trainer, candidates)
                self._save_last_checkpoint(trainer, candidates)
                return
        original(self, trainer, *args, **kwargs)

    return on_validation_end


def is_to_wait(callback: Any, trainer: Any) -> bool:
    """True if a checkpoint is due, but the validation that computes its metric comes later."""
    steps = callback._every_n_train_steps
    return (
        callback.monitor is not None
        and steps >= 1
        and trainer.global_step % steps == 0
        and not callback._should_skip_saving_checkpoint(trainer)
        and not _saves_on_train_epoch_end(callback, trainer)
        and (_is_unknown(callback.monitor, trainer) or _validation_follows(trainer))
    )


def _saves_on_train_epoch_end(callback: Any, trainer: Any) -> bool:
    decide = getattr(callback, "_should_save_on_train_epoch_end", None)  # 1.8 decides when the training starts
    return bool(callback._save_on_train_epoch_end if decide is None else decide(trainer))


def _is_unknown(monitor: str, trainer: Any) -> bool:
    """True if the metric does not exist yet, and the first validation may compute it."""
    return monitor not in trainer.callback_metrics and not trainer.fit_loop.epoch_loop.val_loop._has_run


def _validation_follows(trainer: Any) -> bool:
    """True if the fit loop will validate before the next batch."""
    loop = trainer.fit_loop.epoch_loop
    if sum(loop.val_loop._max_batches) == 0:
        return False  # there is no validation data, or its size is unknown before the validation starts
    check = loop._should_check_val_fx
    fetcher = (trainer.fit_loop._data_fetcher,)
    return bool(check(*fetcher[: len(inspect.signature(check).parameters)]))  # 2.0 has no parameter


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "which checkpoints are saved, when, and what they contain"),
    affected=(">=1.8.0,<2.5.5",),
    targets=(
        # A subclass may need the file now, or may not save when a validation ends.
        Target(f"{_CALLBACK}.on_train_batch_end", _on_train_batch_end, stock=("self",)),
        Target(f"{_CALLBACK}.on_validation_end", _on_validation_end),
    ),
    upstream=Upstream(
        issues=(20919, 20185, 17417),
        pull_requests=(21106,),
        commit="b1cc925d94",
        fixed_in="2.5.5",
        tests=(
            "tests/tests_pytorch/callbacks/test_model_checkpoint_step_interval_val_metric.py"
            "::test_model_checkpoint_every_n_train_steps_with_val_metric_saves_after_val",
        ),
    ),
    impact=Impact(
        "ModelCheckpoint(monitor='val_loss', every_n_train_steps=N) saves just before the validation at the "
        "same step: the file is named and ranked by the previous validation, the best checkpoint is the wrong "
        "one, and the first checkpoint is not saved.",
        ("best_model_path is not the best checkpoint", "checkpoint has the val_loss of the previous validation"),
        consequences=(
            Consequence(
                ("(ckpt_path='best')` is set but `ModelCheckpoint` is not configured to save the best model",),
                "could not find the monitored key in the returned metrics",
                "ModelCheckpoint saves before the validation that provides its metric",
            ),
        ),
    ),
    opt_in="users who save every N steps and choose the best checkpoint by a validation metric",
    signs=("every_n_train_steps monitor",),
    note="Opt-in because the file then has the state at the end of the validation, as from 2.5.5 on, and is "
    "not written if the validation fails. Nothing changes for subclasses of ModelCheckpoint, with "
    "train_time_interval, or if save_on_train_epoch_end is True, which is the default with one validation "
    "per epoch. The official fix (2.5.5) waits only at the last batch of an epoch, and skips the save if "
    "no validation follows that batch. This patch checks at each batch with a due save if a validation "
    "follows, and otherwise saves at once.",
)
