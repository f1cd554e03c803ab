"""With max_steps, a run that is resumed at an epoch's end continues in the right epoch."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


def _restore_loops(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_loops(self: Any) -> None:
        original(self)
        if not self._loaded_checkpoint or self.trainer.state.fn != "fit":
            return
        loop = self.trainer.fit_loop
        if loop.epoch_loop.max_steps == -1:
            return
        epoch, batch = loop.epoch_progress.current, loop.epoch_loop.batch_progress
        if not epoch.ready == epoch.started == epoch.processed > 0:
            return
        is_finished = loop.epoch_loop.global_step >= loop.epoch_loop.max_steps
        is_complete = batch.is_last_batch and batch.current.completed == batch.current.ready
        if is_complete and not is_finished:
            # With max_steps, the loop's own property setter would always continue within the epoch.
            upstream_module(namespace, "pytorch.loops.loop")._Loop.restarting.fset(loop, False)
        if (is_complete or is_finished) and epoch.completed < epoch.processed:
            loop.epoch_progress.increment_completed()

    return restore_loops


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "a run with max_steps that is resumed from the end of an epoch"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector.restore_loops", _restore_loops),
    ),
    upstream=Upstream(issues=(19617,)),
    impact=Impact(
        "With max_steps, a run that is resumed from the end of an epoch starts with an epoch of a single batch "
        "with an invalid batch index, and calls the epoch's hooks for it. If max_steps has been reached, "
        "trainer.current_epoch is one lower than in the uninterrupted run.",
        (
            "resumed training runs an epoch of one batch",
            "batch_idx is the number of batches after resuming",
            "current_epoch is one lower after resuming a run that max_steps has finished",
        ),
        consequences=(
            Consequence(
                (
                    "in on_train_epoch_end ... in _run_early_stopping_check ... in _validate_condition_metric ... "
                    "conditioned on metric ... which is not available",
                ),
                r"Restored all states from the checkpoint (?:file )?at (?!.*\.lr_find_)",
                "the run was resumed, and may have started with an epoch of one batch, which has no validation",
                unless=r"of the following: .{0,1000}\bval|available metrics are: .{0,1000}\bval",
            ),
        ),
    ),
    added="0.2.0",
    opt_in="users who resume runs with max_steps from the end of an epoch",
    signs=("ckpt_path max_steps",),
    note="Opt-in because programs count the epoch themselves. A run that is resumed within an epoch is "
    "unchanged. A run that has reached max_steps trains nothing, as without the patch. Without the patch, "
    "use max_epochs instead of max_steps.",
    after=("evaluation-step-of-checkpoint", "mid-epoch-resume"),
)
