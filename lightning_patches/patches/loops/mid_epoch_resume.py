"""A run that is resumed within an epoch does not train on the saved batch again."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.loops import _saved_batch

_EPOCH_LOOP = "pytorch.loops.training_epoch_loop:_TrainingEpochLoop"
_COUNTED = "_saved_batch_is_counted"
"""Attribute of the epoch loop: True if the patch has counted the saved batch as completed."""
_BEGUN = "_epoch_begun_before"
"""Attribute of the fit loop: number of the epoch that the first process has begun."""


def _restore_loops(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_loops(self: Any) -> None:
        original(self)
        if self._loaded_checkpoint and self.trainer.state.fn == "fit":
            loop = self.trainer.fit_loop.epoch_loop
            progress = loop.batch_progress.current
            if progress.ready == progress.processed == progress.completed + 1:
                loop.batch_progress.increment_completed()
                setattr(loop, _COUNTED, True)
            epoch = self.trainer.fit_loop.epoch_progress.current
            if epoch.started > epoch.processed:
                setattr(self.trainer.fit_loop, _BEGUN, epoch.processed)

    return restore_loops


def _reset(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset(self: Any) -> None:
        original(self)
        is_counted, is_last = vars(self).pop(_COUNTED, False), self._num_ready_batches_reached()
        if not self._restarting:
            return
        if is_last and (is_counted or _saved_batch.is_stateful(self)):
            _saved_batch.pass_is_over(self)
        if not is_counted:
            return
        if is_last or _saved_batch.is_validation_due(self):
            _saved_batch.finish(self)
        elif not self._should_accumulate():
            self._batches_that_stepped += 1
            if vars(self).get("_is_in_resumed_epoch"):  # resumed-metrics has restored what the schedulers monitor
                self.update_lr_schedulers("step", update_plateau_schedulers=True)

    return reset


def _finetune_function(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def finetune_function(self: Any, pl_module: Any, epoch: int, optimizer: Any) -> None:
        loop = getattr(pl_module._trainer, "fit_loop", None)
        has_begun = epoch == getattr(loop, _BEGUN, None)
        if not has_begun or epoch <= self.unfreeze_backbone_at_epoch:
            original(self, pl_module, epoch, optimizer)

    return finetune_function


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "a run that is resumed within an epoch takes one optimizer step less"),
    affected=(">=2.0.0,<2.5.0",),
    targets=(
        Target("pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector.restore_loops", _restore_loops),
        Target(f"{_EPOCH_LOOP}.reset", _reset),
        Target(f"{_EPOCH_LOOP}.advance", _saved_batch.advance),
        Target(f"{_EPOCH_LOOP}.on_run_start", _saved_batch.on_run_start, since="2.2.0"),
        Target("pytorch.callbacks.finetuning:BackboneFinetuning.finetune_function", _finetune_function),
    ),
    upstream=Upstream(
        issues=(18060,),
        pull_requests=(20379,),
        commit="9358898c6e",
        fixed_in="2.5.0",
        tests=("tests/tests_pytorch/loops/test_loops.py::test_restart_parity",),
    ),
    impact=Impact(
        "If a checkpoint was saved at the end of a batch, as ModelCheckpoint does with every_n_train_steps or "
        "train_time_interval, the resumed run counts that batch twice: it takes one optimizer step more than "
        "an uninterrupted run, and its counters are off by one.",
        ("global_step is off by one after resuming from a checkpoint in the middle of an epoch",),
    ),
    after=("evaluation-step-of-checkpoint", "resume-single-iteration"),
    around=("resume-after-last-batch",),
    opt_in="users who resume from checkpoints that were saved within an epoch, on releases below 2.5.0",
    signs=("ckpt_path every_n_train_steps", "ckpt_path train_time_interval"),
    note="Opt-in because programs correct the counters themselves, or continue their data where the counters "
    "say. The resumed run equals the uninterrupted run, as in 2.5.0, with two differences from 2.5.0: "
    "on_train_epoch_start is called again for the epoch that continues, since programs rely on that, and "
    "a validation that is due at the saved batch runs. BackboneFinetuning raises its learning rate once "
    "for that epoch. Programs that correct the counters in on_load_checkpoint are unchanged.",
)
