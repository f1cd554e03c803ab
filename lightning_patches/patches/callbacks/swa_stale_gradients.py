"""StochasticWeightAveraging makes no optimizer step with old gradients after averaging."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_AMP = "pytorch.plugins.precision.amp"


def _on_train_epoch_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_epoch_start(self: Any, trainer: Any, pl_module: Any) -> None:
        original(self, trainer, pl_module)
        if trainer.fit_loop._skip_backward:  # the extra epoch for batch norm statistics, which ends with a step
            for optimizer in trainer.optimizers:
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        parameter.grad = None

    return on_train_epoch_start


def _optimizer_step(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def optimizer_step(self: Any, optimizer: Any, model: Any, closure: Callable[[], Any], **kwargs: Any) -> Any:
        scaler = self.scaler
        if scaler is None or not model._trainer.fit_loop._skip_backward:
            return original(self, optimizer, model, closure, **kwargs)
        self.scaler = None  # it refuses a step without gradients
        try:
            return original(self, optimizer, model, closure, **kwargs)
        finally:
            self.scaler = scaler

    return optimizer_step


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "a model with batch norm ends with the averaged weights"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.callbacks.stochastic_weight_avg:StochasticWeightAveraging.on_train_epoch_start",
            _on_train_epoch_start,
        ),
        Target(f"{_AMP}:MixedPrecisionPlugin.optimizer_step", _optimizer_step, before="2.1.1"),
        Target(f"{_AMP}:MixedPrecision.optimizer_step", _optimizer_step, since="2.1.1"),
    ),
    after=("amp-skipped-batch",),
    upstream=Upstream(issues=(17245,)),
    impact=Impact(
        "With StochasticWeightAveraging and a model with batch norm, the extra epoch that updates the batch "
        "norm statistics ends with an optimizer step. That step uses the gradients of the last training batch "
        "and moves the weights away from the average.",
        (
            "weights after StochasticWeightAveraging are not the average",
            "optimizer step in the batch norm epoch of StochasticWeightAveraging",
        ),
    ),
    opt_in="users who train a model with batch norm and StochasticWeightAveraging",
    signs=("StochasticWeightAveraging",),
    note="The patch is equivalent to a program that clears the gradients when that extra epoch begins. The "
    "hooks of the step are still called. Opt-in because all runs with the callback and batch norm end "
    "with other weights.",
)
