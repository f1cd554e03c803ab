"""``pytorch/trainer/connectors/checkpoint_connector.py``: what is restored from a checkpoint."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Callable, Optional

from lightning_patches import _runtime
from lightning_patches.patch import Impact, Patch, Target, Upstream

_CONNECTOR = "pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector"
_MID_EPOCH_HARM = (
    "Resumed from a checkpoint that was saved at the end of a batch, as ModelCheckpoint does it with "
    "every_n_train_steps or train_time_interval, the loops count that batch twice: the run takes one optimizer "
    "step more than the same run without a break, and its counters are off by one."
)


def _restore_modules_and_callbacks(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_modules_and_callbacks(self: Any, checkpoint_path: Optional[Any] = None) -> None:
        original(self, checkpoint_path)
        if self.trainer.state.fn != "fit":
            self.restore_callbacks()

    return restore_modules_and_callbacks


def _restore_loops(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_loops(self: Any) -> None:
        original(self)
        if self._loaded_checkpoint and self.trainer.state.fn == "fit":
            progress = self.trainer.fit_loop.epoch_loop.batch_progress.current
            if progress.completed < progress.processed:  # saved between the two, in on_train_batch_end
                _runtime.warn_once(
                    "mid-epoch-resume",
                    f"This training is resumed from a checkpoint that was saved at the end of batch "
                    f"{progress.processed} of an epoch. {_MID_EPOCH_HARM} It cannot be mended at run time: move to "
                    f"Lightning 2.5.1 or later, or resume from a checkpoint that was saved at the end of an epoch.",
                )

    return restore_loops


_BEFORE = "_progress_before_evaluation"
_PROGRESS = (
    "epoch_progress",
    "epoch_loop.automatic_optimization.optim_progress",
    "epoch_loop.manual_optimization.optim_step_progress",
)


def _restore_progress(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_loops(self: Any) -> None:
        original(self)
        saved = ((self._loaded_checkpoint or {}).get("loops") or {}).get("fit_loop")
        if saved and self.trainer.state.fn != "fit":
            loop = self.trainer.fit_loop
            setattr(loop, _BEFORE, loop.state_dict())
            _load_progress(loop, saved)

    return restore_loops


def _put_progress_back(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def teardown(self: Any) -> None:
        original(self)
        before = vars(self.fit_loop).pop(_BEFORE, None)
        if before is not None:
            _load_progress(self.fit_loop, before)

    return teardown


def _load_progress(loop: Any, saved: dict[str, Any]) -> None:
    """Load what epoch, global step and the loggers' step are read from. The loop does not take itself to be resumed."""
    for name in _PROGRESS:
        if name in saved:
            attrgetter(name)(loop).load_state_dict(saved[name])
    loop.epoch_loop.on_load_checkpoint(saved.get("epoch_loop.state_dict", {}))


PATCHES = (
    Patch(
        name="callback-state-in-evaluation",
        title="validate, test and predict restore the callbacks from their checkpoint",
        group="correctness",
        affected=(">=2.0.0,<2.5.0",),
        targets=(Target(f"{_CONNECTOR}._restore_modules_and_callbacks", _restore_modules_and_callbacks),),
        calls=("pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector.restore_callbacks()",),
        upstream=Upstream(
            pull_requests=(20403,),
            fixed_in="2.5.0",
        ),
        impact=Impact(
            "validate, test and predict with a ckpt_path load the weights, but not the state of the callbacks: a "
            "callback with a state of its own evaluates with its initial one.",
            ("callback state is not loaded from checkpoint during trainer.test", "load_state_dict is not called"),
        ),
        default=False,
        note="Opt-in: after a fit, trainer.test(ckpt_path='best') takes the callbacks back to the state of that "
        "checkpoint, too, and ModelCheckpoint warns where its dirpath has changed. Scripts that go on with the "
        "callbacks of the fit may rely on neither happening.",
    ),
    Patch(
        name="evaluation-step-of-checkpoint",
        title="validate, test and predict with a ckpt_path use that checkpoint's epoch and step",
        group="correctness",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(
            Target(f"{_CONNECTOR}.restore_loops", _restore_progress),
            Target("pytorch.trainer.trainer:Trainer._teardown", _put_progress_back),
        ),
        calls=(
            "pytorch.loops.loop:_Loop.state_dict()",
            "pytorch.loops.progress:_OptimizationProgress.load_state_dict()",
            "pytorch.loops.progress:_Progress.load_state_dict()",
            "pytorch.loops.training_epoch_loop:_TrainingEpochLoop.on_load_checkpoint()",
        ),
        upstream=Upstream(issues=(20052, 19558), pull_requests=(21714,)),
        impact=Impact(
            "trainer.test(ckpt_path=...) logs its results at the step where the training ended, or at epoch 0 and "
            "step 0 in a new script, rather than at those of the checkpoint.",
            ("test is logged at step 0", "trainer.test with a checkpoint logs the last epoch"),
        ),
        equivalent_to="epoch and global_step as they stand in the checkpoint",
        default=False,
        note="Opt-in: scripts that look up their test results at step 0, or at the last step, find them elsewhere. "
        "Afterwards the Trainer is where it was before, so that fit() goes on from there.",
    ),
    Patch(
        name="warn-mid-epoch-resume",
        title="Resuming from a checkpoint within an epoch warns that one step is taken twice",
        group="correctness",
        affected=(">=2.0.0,<2.5.0",),
        targets=(Target(f"{_CONNECTOR}.restore_loops", _restore_loops),),
        witnesses=("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.reset",),
        upstream=Upstream(
            issues=(18060,),
            pull_requests=(20379,),
            commit="9358898c6e",
            fixed_in="2.5.0",
            tests=("tests/tests_pytorch/loops/test_loops.py::test_restart_parity",),
        ),
        impact=Impact(_MID_EPOCH_HARM),
        note="This patch mends nothing: it warns, once, when such a checkpoint is loaded.",
        warns_of="mid-epoch-resume",
    ),
)
