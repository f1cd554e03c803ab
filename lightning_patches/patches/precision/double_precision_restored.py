"""With 64-true precision, a checkpoint's weights are loaded without rounding."""

from typing import Any, Callable

from lightning_patches.engine.distributions import module_name
from lightning_patches.patch import Effect, Impact, Patch, Target

_DOUBLE = "pytorch.plugins.precision.double"


def _restore(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_modules_and_callbacks(self: Any, checkpoint_path: Any = None, *args: Any, **kwargs: Any) -> None:
        if checkpoint_path and type(self.trainer.precision_plugin).__module__ == module_name(namespace, _DOUBLE):
            self.trainer.lightning_module.double()  # the strategy's setup converts the module too late
        original(self, checkpoint_path, *args, **kwargs)

    return restore_modules_and_callbacks


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "results of resumed runs and of evaluation with 64-true precision"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector._restore_modules_and_callbacks",
            _restore,
            stock=("self.trainer.lightning_module.double",),
        ),
    ),
    impact=Impact(
        "With Trainer(precision='64-true'), fit, validate, test and predict with a ckpt_path round all weights of the "
        "checkpoint to float32.",
        (
            "weights differ from the checkpoint with precision 64-true",
            "double precision weights are rounded when a checkpoint is loaded",
            "float64 weights lose digits when a run with precision 64-true is resumed",
        ),
    ),
    after=("callback-state-in-evaluation",),
    opt_in="users who resume or evaluate checkpoints with 64-true precision",
    note="Opt-in because a layer can need its weights before it is converted. The patch is equivalent to a "
    "program that calls model.double() before it passes the model to the Trainer. The module is converted "
    "before the checkpoint is loaded instead of afterwards. A module with its own double() is unchanged.",
)
