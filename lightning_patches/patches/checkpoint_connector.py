"""``pytorch/trainer/connectors/checkpoint_connector.py``: what is restored from a checkpoint."""

from __future__ import annotations

from typing import Any, Callable, Optional

from lightning_patches import _runtime
from lightning_patches.known_bugs import MID_EPOCH_RESUME
from lightning_patches.patch import Impact, Patch, Target, Upstream

_CONNECTOR = "pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector"


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
                bug = MID_EPOCH_RESUME
                _runtime.warn_once(
                    bug.name,
                    f"This training is resumed from a checkpoint that was saved at the end of batch "
                    f"{progress.processed} of an epoch. {bug.harm} It cannot be mended at run time: move to Lightning "
                    f"{bug.move_to} or later, or resume from a checkpoint that was saved at the end of an epoch.",
                )

    return restore_loops


PATCHES = (
    Patch(
        name="callback-state-in-evaluation",
        title="validate, test and predict restore the callbacks from their checkpoint",
        group="correctness",
        affected=(">=2.0.0,<2.5.0",),
        targets=(Target(f"{_CONNECTOR}._restore_modules_and_callbacks", _restore_modules_and_callbacks),),
        upstream=Upstream(
            pull_requests=(20403,),
            fixed_in="2.5.0",
        ),
        impact=Impact(
            "validate, test and predict with a ckpt_path load the weights, but not the state of the callbacks: a "
            "callback with a state of its own evaluates with what it was made with.",
            ("callback state is not loaded from checkpoint during trainer.test", "load_state_dict is not called"),
        ),
        default=False,
        note="Opt-in: after a fit, trainer.test(ckpt_path='best') takes the callbacks back to the state of that "
        "checkpoint, too, and ModelCheckpoint warns where its dirpath has changed. Scripts that go on with the "
        "callbacks of the fit may rely on neither.",
    ),
    Patch(
        name="warn-mid-epoch-resume",
        title="Resuming from a checkpoint within an epoch says that one step is taken twice",
        group=MID_EPOCH_RESUME.group,
        affected=MID_EPOCH_RESUME.affected,
        targets=(Target(f"{_CONNECTOR}.restore_loops", _restore_loops),),
        witnesses=("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.reset",),
        upstream=Upstream(
            pull_requests=MID_EPOCH_RESUME.pull_requests,
            commit="9358898c6e",
            fixed_in=MID_EPOCH_RESUME.fixed_in,
            tests=("tests/tests_pytorch/loops/test_loops.py::test_restart_parity",),
        ),
        impact=Impact(MID_EPOCH_RESUME.harm),
        note="This patch mends nothing: it warns, once, when such a checkpoint is loaded.",
        warns_of=MID_EPOCH_RESUME.name,
    ),
)
