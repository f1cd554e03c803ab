"""A checkpoint that is due just before a validation gets that validation's metric."""

from __future__ import annotations

import inspect
import time
from typing import Any, Callable, Iterable, Optional

from lightning_patches.engine.distributions import ROOT_PACKAGES, upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"

_WAITING = "_waiting_for_validation"
"""The step whose save was put off until the validation after it; ``_ANY`` where a metric was missing that validation
may bring."""

_ANY = -1


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        saves_here = self._every_n_train_steps >= 1 or self._train_time_interval
        if self.monitor is None or not saves_here or not _may_wait(self, trainer, pl_module, namespace):
            original(self, trainer, pl_module, *args, **kwargs)
            return
        if not _is_due(self, trainer):
            return
        candidates = self._monitor_candidates(trainer)
        missing = self.monitor not in candidates
        misspelled = missing and trainer.fit_loop.epoch_loop.val_loop._has_run
        if not misspelled and _is_validated(self.monitor, trainer, missing) and _validation_follows(trainer):
            setattr(self, _WAITING, trainer.global_step)
            self._last_time_checked = time.monotonic()
        elif missing or not pl_module.automatic_optimization:
            if missing:
                setattr(self, _WAITING, _ANY)
            original(self, trainer, pl_module, *args, **kwargs)
        else:
            vars(self).pop(_WAITING, None)
            self._last_time_checked = time.monotonic()
            self._save_topk_checkpoint(trainer, candidates)
            self._save_last_checkpoint(trainer, candidates)

    return on_train_batch_end


def _on_validation_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_validation_end(self: Any, trainer: Any, pl_module: Any) -> None:
        waiting: Optional[int] = vars(self).get(_WAITING)
        if waiting == trainer.global_step and _is_saved_at_epoch_end(self, trainer):
            return
        if waiting in (_ANY, trainer.global_step) and not self._should_skip_saving_checkpoint(trainer):
            candidates = self._monitor_candidates(trainer)
            there = self.monitor in candidates
            if there:
                delattr(self, _WAITING)
                self._defer_save_until_validation = False  # what 2.5.5 and later remember about it
                self._save_topk_checkpoint(trainer, candidates)
            if there or waiting != _ANY:
                self._save_last_checkpoint(trainer, candidates)
            if there:
                return
        original(self, trainer, pl_module)

    return on_validation_end


def _on_train_epoch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_epoch_end(self: Any, trainer: Any, pl_module: Any) -> None:
        waits = vars(self).get(_WAITING) == trainer.global_step
        if waits and not self._should_skip_saving_checkpoint(trainer):
            candidates = self._monitor_candidates(trainer)
            if self.monitor in candidates:
                delattr(self, _WAITING)
                self._defer_save_until_validation = False
                self._save_topk_checkpoint(trainer, candidates)
                self._save_last_checkpoint(trainer, candidates)
        original(self, trainer, pl_module)

    return on_train_epoch_end


def _is_saved_at_epoch_end(callback: Any, trainer: Any) -> bool:
    """Whether this validation ends the epoch, and checkpoints by metrics belong after both: a fit that is resumed
    from there does not end the epoch again."""
    ends = trainer.fit_loop.epoch_loop.batch_progress.is_last_batch
    return bool(ends and callback._should_save_on_train_epoch_end(trainer))


def _on_exception(original: Optional[Callable[..., None]], namespace: str) -> Callable[..., None]:
    def on_exception(self: Any, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        # In one process only: to save, ranks have to come together, and others may be gone.
        waits = vars(self).pop(_WAITING, None) == trainer.global_step and trainer.world_size == 1
        if waits and not self._should_skip_saving_checkpoint(trainer):
            candidates = self._monitor_candidates(trainer)
            if self.monitor in candidates:
                self._save_topk_checkpoint(trainer, candidates)
            self._save_last_checkpoint(trainer, candidates)
        if original is not None:
            original(self, trainer, pl_module, exception)
        else:
            model_checkpoint = upstream_module(namespace, "pytorch.callbacks.model_checkpoint").ModelCheckpoint
            super(model_checkpoint, self).on_exception(trainer, pl_module, exception)

    return on_exception


def _is_due(callback: Any, trainer: Any) -> bool:
    """Whether the callback saves after this batch, as the callback itself would decide."""
    steps = callback._every_n_train_steps
    if steps >= 1 and trainer.global_step % steps != 0 or callback._should_skip_saving_checkpoint(trainer):
        return False
    if steps >= 1:
        return True
    last = callback._last_time_checked
    over = last is not None and time.monotonic() - last >= callback._train_time_interval.total_seconds()
    return bool(trainer.strategy.broadcast(over))


_BEGIN_VALIDATION = ("on_validation_start", "on_validation_epoch_start", "on_validation_model_eval")


def _may_wait(callback: Any, trainer: Any, pl_module: Any, namespace: str) -> bool:
    """Whether nobody's own code would see that a save comes after the validation, and not before it.

    A subclass may count on the file when its on_train_batch_end goes on, or need not save in its on_validation_end.
    What runs when a validation begins may put other weights in, such as an average. From 2.6.0 on, a model with manual
    optimization may keep the weights from before its optimizer step, which are saved in their place at the end of the
    batch only.
    """
    base = upstream_module(namespace, "pytorch.callbacks.model_checkpoint").ModelCheckpoint
    module_base = upstream_module(namespace, "pytorch.core.module").LightningModule
    theirs = [c for c in trainer.callbacks if type(c).__module__.partition(".")[0] not in ROOT_PACKAGES]
    return (
        not _overrides(callback, base, ("on_train_batch_end", "on_validation_end", "on_train_epoch_end"))
        and not _overrides(pl_module, module_base, _BEGIN_VALIDATION)
        and not any(_overrides(other, base, _BEGIN_VALIDATION) for other in theirs)
        and (pl_module.automatic_optimization or not hasattr(pl_module, "saved_models"))
    )


def _overrides(instance: Any, base: type, hooks: Iterable[str]) -> bool:
    return any(
        hook in vars(instance) or getattr(type(instance), hook, None) is not getattr(base, hook, None) for hook in hooks
    )


def _is_validated(monitor: str, trainer: Any, missing: bool) -> bool:
    """Whether the metric comes, or may yet come, from the validation and not from the training."""
    loop = trainer.fit_loop.epoch_loop
    validated = missing or _logs(loop.val_loop, monitor)
    return validated and not _logs(loop, monitor)


def _logs(loop: Any, metric: str) -> bool:
    name = metric.partition("/dataloader_idx_")[0]
    return any(
        name in (meta.name, meta.forked_name(on_step=True), meta.forked_name(on_step=False))
        for meta in (result.meta for result in loop._results.values())
    )


def _validation_follows(trainer: Any) -> bool:
    """Whether the fit validates before it takes another batch, in every rank alike."""
    if getattr(trainer, "_val_check_time_interval", None) is not None:
        return False  # each rank looks at its own clock
    loop = trainer.fit_loop.epoch_loop
    if sum(loop.val_loop._max_batches) == 0:
        return False  # nothing to validate with, or not known before the validation begins
    check = loop._should_check_val_fx
    fetcher = (trainer.fit_loop._data_fetcher,)
    return bool(check(*fetcher[: len(inspect.signature(check).parameters)]))  # 2.0 takes none


PATCH = Patch(
    name="checkpoint-after-validation",
    title="A checkpoint that is due just before a validation gets that validation's metric",
    group="correctness",
    changes_results="files: which checkpoints are saved, when, and what they hold",
    default=False,
    for_whom="whoever saves every so many steps, and chooses the best checkpoint by a metric of the validation",
    signs=("every_n_train_steps monitor",),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_CALLBACK}.on_train_batch_end", _on_train_batch_end),
        Target(f"{_CALLBACK}.on_validation_end", _on_validation_end),
        Target(f"{_CALLBACK}.on_train_epoch_end", _on_train_epoch_end),
        Target(f"{_CALLBACK}.on_exception", _on_exception, adds=True, before="2.5.3"),
        Target(f"{_CALLBACK}.on_exception", _on_exception, since="2.5.3"),
    ),
    calls=(
        "pytorch.callbacks.model_checkpoint:ModelCheckpoint._monitor_candidates()",
        "pytorch.callbacks.model_checkpoint:ModelCheckpoint._save_last_checkpoint()",
        "pytorch.callbacks.model_checkpoint:ModelCheckpoint._save_topk_checkpoint()",
        "pytorch.callbacks.model_checkpoint:ModelCheckpoint._should_save_on_train_epoch_end()",
        "pytorch.callbacks.model_checkpoint:ModelCheckpoint._should_skip_saving_checkpoint()",
        "pytorch.core.module:LightningModule()",
        "pytorch.core.module:LightningModule.automatic_optimization()",
        "pytorch.loops.training_epoch_loop:_TrainingEpochLoop._should_check_val_fx()",
        "pytorch.trainer.connectors.logger_connector.result:_Metadata.forked_name()",
        "pytorch.trainer.trainer:Trainer.global_step()",
    ),
    upstream=Upstream(
        issues=(20919, 20185, 17417),
        pull_requests=(21106,),
        others=((21106, "2.5.5"),),
        commit="b1cc925d94",
        tests=(
            "tests/tests_pytorch/callbacks/test_model_checkpoint_step_interval_val_metric.py"
            "::test_model_checkpoint_every_n_train_steps_with_val_metric_saves_after_val",
        ),
    ),
    impact=Impact(
        "ModelCheckpoint(monitor='val_loss', every_n_train_steps=N) saves just before the validation that belongs "
        "to the step: the file is named and ranked by the previous validation, the best one is the wrong one, "
        "and the first one is not saved.",
        ("best_model_path is not the best checkpoint", "checkpoint has the val_loss of the previous validation"),
    ),
    further_than_upstream="The official fix (2.5.5) waits for the validation only at the last batch of an epoch, "
    "and not with the default save_on_train_epoch_end when validation runs once per epoch. There, and at a "
    "validation within the epoch, 2.6.6 still uses the metric from before. Where no validation follows the last "
    "batch, it drops the save; here it is made, as before.",
    equivalent_to="ModelCheckpoint(monitor=...) without every_n_train_steps, which saves after each validation",
    note="Opt-in: for runs that choose checkpoints by val_loss every N steps, and whose weights are the same "
    "before, during and after a validation. The file is written after the validation that belongs to the step, or "
    "at the end of the epoch, as save_on_train_epoch_end says, and has the state of that moment: whatever changes "
    "weights for a validation (averages, layers that merge in eval mode) is in it, and what the validation did. "
    "Should the validation fail, or be interrupted, it is written then, but not in a job of several ranks, nor if "
    "the process is killed. A save with which no validation coincides is made at once, by the latest metric that "
    "is known. Nothing changes for a subclass that has an on_train_batch_end, on_validation_end or "
    "on_train_epoch_end of its own, where a model or callback has an on_validation_start, "
    "on_validation_epoch_start or on_validation_model_eval, or with validation by the clock (2.6).",
)
