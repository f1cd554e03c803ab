"""Warn when ModelCheckpoint or EarlyStopping uses an old value of its monitor, or none."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Target
from lightning_patches.patches._warning import Notes, is_applied, observe, stored, warn, warning
from lightning_patches.patches.logging.first_batch_logged import is_in_batch

_CHECKPOINT = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"
_STOPPING = "pytorch.callbacks.early_stopping:EarlyStopping"

_used = Notes()
"""By logger connector: what was last logged, in on_train_batch_end, for monitors that were used in this batch."""
_unset = Notes()
"""By callback: its option save_on_train_epoch_end or check_on_train_epoch_end before its setup."""


def _use(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    option = "save" if original.__name__ == "_save_topk_checkpoint" else "check"

    def before(self: Any, trainer: Any, *_: Any, **__: Any) -> None:
        connector, loop, monitor = trainer._logger_connector, trainer.fit_loop.epoch_loop, stored(self, "monitor")
        in_batch = trainer.state.stage == "train" and is_in_batch(connector)
        in_validation = trainer.state.stage == "validate" and loop._num_ready_batches_reached()
        is_fresh = any(one.meta.name == monitor for one in loop.val_loop._results.values())
        if is_fresh or trainer.state.fn != "fit" or monitor not in connector._callback_metrics:
            return
        kind = type(self).__name__
        for metric in loop._results.values():
            meta = metric.meta
            is_mean = meta.on_epoch and meta.forked_name(False) == monitor
            if metric.has_reset:
                continue
            if in_batch and meta.fx == "on_train_batch_end" and meta.on_step and meta.name == monitor:
                _used.add(connector, (*_used.find(connector, ()), (kind, metric, metric._forward_cache)))
            elif in_batch and is_mean:
                text = "the mean of an earlier epoch, since an epoch's mean is computed at its end. Log the value with "
                _warn(kind, monitor, f"{text}on_step=True, or save with every_n_epochs.")
            elif in_validation and meta.on_epoch and monitor in (meta.name, meta.forked_name(False)):
                age = "the mean of an earlier epoch" if is_mean else "the value of the last batch"
                text = f"{age}, since this epoch's mean is computed after its validation. Set"
                _warn(kind, monitor, f"{text} {option}_on_train_epoch_end=True, or monitor a metric of the validation.")

    return observe(original, before=before)


def _warn(kind: str, monitor: str, text: str) -> None:
    off = "LIGHTNING_PATCHES=default,-warn-monitor-late switches this warning off."
    warn(f"monitor-late {kind} {monitor}", f"{kind} uses an old value of {monitor!r}: {text} {off}", stacklevel=5)


def _on_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def before(self: Any) -> None:
        for kind, metric, value in _used.take(self, ()) if _used else ():
            if metric._forward_cache is not value:
                text = "the value of the batch before, since on_train_batch_end of the module is called after those of "
                _warn(kind, metric.meta.name, f"{text}callbacks. Log it in training_step, or in a callback.")

    return observe(original, before=before)


def _setup(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def before(self: Any, trainer: Any, *_: Any, **__: Any) -> None:
        if type(self).__module__ == original.__module__ and trainer.state.fn == "fit":
            _unset.add(self, stored(self, f"_{_option(self)}"))

    return observe(original, before=before)


def _option(callback: Any) -> str:
    return f"{'save' if type(callback).__name__ == 'ModelCheckpoint' else 'check'}_on_train_epoch_end"


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def before(self: Any) -> None:
        trainer = self.trainer
        every, within = trainer.check_val_every_n_epoch, trainer.val_check_interval
        unset = [(callback, _unset.take(callback, True)) for callback in trainer.callbacks]
        is_usual = every == within == 1 and type(within) is not int
        if is_usual or is_applied("monitor-after-each-validation", namespace):
            return
        for callback, asked in unset:
            if asked:
                continue
            option = _option(callback)
            saves = option.startswith("save")
            waits = every != 1 or (within != 1 and not saves)
            if saves and not callback._every_n_epochs * callback.save_top_k:
                continue
            if trainer.enable_validation:
                if asked is None and every == within == 1 < self.max_batches and type(within) is int:
                    warn(
                        "monitor-late 1",
                        "val_check_interval=1 validates after each batch, but ModelCheckpoint and EarlyStopping take "
                        "it for 1.0, and use the monitor at the end of the epoch only. For one validation per epoch "
                        "set 1.0, otherwise set LIGHTNING_PATCHES=default,exact-logging.",
                    )
            elif waits:
                warn(
                    f"monitor-late {option}",
                    f"{type(callback).__name__} {'saves' if saves else 'checks'} nothing: with check_val_every_n_epoch="
                    f"{every} and val_check_interval={within} it waits for a validation, which never runs. Leave out "
                    f"these options of the Trainer, set {option}=True, or set LIGHTNING_PATCHES=default,exact-logging.",
                )

    return observe(original, before=before)


PATCH = warning(
    Target(f"{_CHECKPOINT}._save_topk_checkpoint", _use),
    Target(f"{_STOPPING}._run_early_stopping_check", _use),
    Target(f"{_CHECKPOINT}.setup", _setup),
    Target(f"{_STOPPING}.setup", _setup),
    Target("pytorch.loops.fit_loop:_FitLoop.on_run_start", _on_run_start),
    Target("pytorch.trainer.connectors.logger_connector.logger_connector:_LoggerConnector.on_batch_end", _on_batch_end),
    added="0.3.0",
    affected=(">=2.0.0,<=2.6.6",),
    impact=Impact(
        "ModelCheckpoint and EarlyStopping use the mean of an earlier epoch if a metric of training is the monitor and "
        "check_val_every_n_epoch is not 1 or every_n_train_steps is set, and the value of the batch before if the "
        "module logs it in on_train_batch_end. Without validation data and with check_val_every_n_epoch=2 they do "
        "nothing, and they take val_check_interval=1 for 1.0.",
        (
            "ModelCheckpoint saves with the training loss of the previous epoch",
            "EarlyStopping with check_val_every_n_epoch=2 uses an old train_loss",
            "monitor logged in on_train_batch_end is one batch old",
        ),
    ),
    after=(
        "epoch-start-on-resume",
        "monitor-after-each-validation",
        "resumed-metrics",
        "slurm-signal-at-batch-end",
        "values-of-failed-run",
        "warn-callbacks-reused",
        "warn-pretrained-in-eval",
    ),
    when=" for each cause and monitor",
    note="It names the monitor, how old its value is, and the options that help. The opt-in patch "
    "monitor-after-each-validation saves and checks without validation data, and with val_check_interval=1.",
)
