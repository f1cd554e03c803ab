"""A resumed run does not repeat a validation that was complete when the checkpoint was saved."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_LEFT_OUT: dict[str, Callable[..., Any]] = {
    "_should_check_val_fx": lambda *_: False,
    # At this point on_advance_end only updates ReduceLROnPlateau, whose metric was lost with the first process.
    "update_lr_schedulers": lambda *_, **__: None,
}


def validates_again(loop: Any) -> bool:
    """True if a resumed loop would repeat a validation that was complete.

    The validation loop is restarting only before the first training batch.
    """
    progress = loop.val_loop.batch_progress
    ended = progress.is_last_batch and progress.current.completed == progress.current.ready
    return bool(loop._restarting and loop.val_loop._restarting and ended)


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_advance_end(self: Any, *args: Any, **kwargs: Any) -> None:
        if not validates_again(self) or _LEFT_OUT.keys() & vars(self).keys() or _marks_validation(self, namespace):
            original(self, *args, **kwargs)
            return
        left_out = dict(_LEFT_OUT)
        if vars(self).get("_is_in_resumed_epoch"):  # resumed-metrics has restored the metric
            del left_out["update_lr_schedulers"]
        vars(self).update(left_out)
        try:
            original(self, *args, **kwargs)
        finally:
            for name in left_out:
                del vars(self)[name]

    return on_advance_end


def _marks_validation(loop: Any, namespace: str) -> bool:
    """True if the module overrides the hook that many programs use to turn the repeated validation into a sanity check.

    Without the repeated validation, such a program (discussion 18110) would turn the first real validation into a
    sanity check.
    """
    hook, module = "on_validation_model_zero_grad", loop.trainer.lightning_module
    base = upstream_module(namespace, "pytorch").LightningModule
    return inspect.getattr_static(module, hook, None) is not inspect.getattr_static(base, hook, None)


def _on_train_epoch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_epoch_end(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        # fit_loop.restarting is True until the first epoch ends.
        if not (trainer.fit_loop.restarting and self.monitor not in trainer.callback_metrics):
            original(self, trainer, *args, **kwargs)

    return on_train_epoch_end


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("numbers", "a resumed run has one validation less, and draws other random numbers after it"),
    affected=(">=2.0.0,<2.5.0",),
    targets=(
        Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.on_advance_end", _on_advance_end),
        Target("pytorch.callbacks.early_stopping:EarlyStopping.on_train_epoch_end", _on_train_epoch_end),
    ),
    upstream=Upstream(issues=(19549, 20277, 20288, 18595), pull_requests=(20379,), fixed_in="2.5.0"),
    impact=Impact(
        "A run that is resumed from a checkpoint saved at the end of a validation first validates one batch: "
        "the metric of that batch is logged, and may become the best one.",
        (
            "validation runs first after resuming from a checkpoint",
            "validation metric is wrong after resuming",
            "SkipResumeTrainingValidationLoop, NoValOnRestartTrainingLoop: an epoch loop of one's own",
        ),
    ),
    opt_in="users who resume from checkpoints that are saved at the end of a validation",
    signs=("ckpt_path val_check_interval", "ckpt_path save_on_train_epoch_end"),
    after=("validation-own-randomness",),
    note="Opt-in because working programs can depend on that validation: those that read its metric in "
    "on_train_epoch_end, and those that skip the first validation after a resume. With the patch, the "
    "former find no metric, as from 2.5.0 on, and the latter skip a real validation. Modules that "
    "override on_validation_model_zero_grad, the most common way to skip it (discussion 18110), are "
    "unchanged. EarlyStopping and ReduceLROnPlateau miss one check, because the metric was lost with the "
    "first process; from 2.5.0 on they end the run with an error instead (issue 18595, open). A "
    "validation that was not complete when the checkpoint was saved continues.",
)
