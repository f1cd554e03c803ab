"""validate, test and predict restore the state of callbacks from the checkpoint."""

from typing import Any, Callable, Optional

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_CONNECTOR = "pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector"


def _restore_modules_and_callbacks(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_modules_and_callbacks(self: Any, checkpoint_path: Optional[Any] = None) -> None:
        original(self, checkpoint_path)
        if self.trainer.state.fn != "fit":
            self.restore_callbacks()

    return restore_modules_and_callbacks


def _restore_in_1x(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_modules_and_callbacks(self: Any, checkpoint_path: Optional[Any] = None) -> None:
        original(self, checkpoint_path)
        if self.state.fn != "fit":
            self._checkpoint_connector.restore_callbacks()

    return restore_modules_and_callbacks


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "evaluation results that depend on the state of a callback"),
    affected=(">=1.8.0,<2.5.0",),
    targets=(
        Target(f"{_CONNECTOR}._restore_modules_and_callbacks", _restore_modules_and_callbacks, since="2.0.0"),
        Target("pytorch.trainer.trainer:Trainer._restore_modules_and_callbacks", _restore_in_1x, before="2.0.0"),
    ),
    upstream=Upstream(pull_requests=(20403,), fixed_in="2.5.0"),
    impact=Impact(
        "validate, test and predict with a ckpt_path load the weights but not the state of the callbacks: a "
        "callback that has state evaluates with its initial state.",
        ("callback state is not loaded from checkpoint during trainer.test", "load_state_dict is not called"),
    ),
    opt_in="users who evaluate a checkpoint with callbacks that have state",
    signs=("load_state_dict ckpt_path",),
    around=("double-precision-restored",),
    note="Opt-in because after a fit, trainer.test(ckpt_path='best') also resets the callbacks to the state in "
    "that checkpoint, and ModelCheckpoint warns if its dirpath has changed. Scripts that use the "
    "callbacks after such a test may rely on their state from the fit.",
)
