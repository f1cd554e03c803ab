"""Warn when a run is resumed within an epoch and counts the saved batch twice."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title

_CONNECTOR = "pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector"

_SUMMARY = (
    "If a checkpoint was saved at the end of a batch, as ModelCheckpoint does with every_n_train_steps or "
    "train_time_interval, the resumed run counts that batch twice: it takes one optimizer step more than an "
    "uninterrupted run, and its counters are off by one."
)


def _restore_loops(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_loops(self: Any) -> None:
        original(self)
        if self._loaded_checkpoint and self.trainer.state.fn == "fit":
            progress = self.trainer.fit_loop.epoch_loop.batch_progress.current
            # A checkpoint that was saved in on_train_batch_end has a batch that is processed but not completed.
            if progress.completed < progress.processed:
                notices.warn_once(
                    "mid-epoch-resume",
                    f"This training is resumed from a checkpoint that was saved at the end of batch "
                    f"{progress.processed} of an epoch. {_SUMMARY} "
                    f"Use the patch mid-epoch-resume, move to Lightning 2.5.1 or later, or resume from a checkpoint "
                    f"that was saved at the end of an epoch.",
                )

    return restore_loops


PATCH = Patch(
    *name_and_title(__name__, __doc__),
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
    impact=Impact(_SUMMARY),
    note="This patch fixes nothing: it warns once, when such a checkpoint is loaded without mid-epoch-resume, "
    "the default patch that fixes the bug.",
    after=("evaluation-step-of-checkpoint", "mid-epoch-resume"),
    fixed_by=("mid-epoch-resume",),
    around=("resume-after-last-batch",),
)
