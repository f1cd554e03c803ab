"""validate, test and predict with a ckpt_path use that checkpoint's epoch and step."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

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
    """Load the epoch, the global step and the logger's step, without marking the loop as resumed."""
    for name in _PROGRESS:
        if name in saved:
            attrgetter(name)(loop).load_state_dict(saved[name])
    loop.epoch_loop.on_load_checkpoint(saved.get("epoch_loop.state_dict", {}))


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "the step at which evaluation metrics are logged"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector.restore_loops", _restore_progress),
        Target("pytorch.trainer.trainer:Trainer._teardown", _put_progress_back),
    ),
    upstream=Upstream(issues=(20052, 19558, 17127), pull_requests=(21714,)),
    impact=Impact(
        "trainer.test(ckpt_path=...) logs its results at the step where training ended, or at epoch 0 and step "
        "0 in a new script, instead of the checkpoint's epoch and step.",
        ("test is logged at step 0", "trainer.test with a checkpoint logs the last epoch"),
    ),
    opt_in="users who compare the test results of several checkpoints in one logger",
    note="Opt-in because scripts that look up their test results at step 0, or at the last step, find them at "
    "another step. After the evaluation, the Trainer has its previous epoch and step, so that fit() "
    "continues from there.",
    around=("resume-after-last-batch",),
)
