"""A run that ends before StochasticWeightAveraging starts keeps its trained weights."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.stochastic_weight_avg:StochasticWeightAveraging"

_ENDLESS = -1


def _on_train_end_unless_averaged(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_end(self: Any, trainer: Any, pl_module: Any) -> None:
        if self._max_epochs != _ENDLESS or self._initialized:
            original(self, trainer, pl_module)

    return on_train_end


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "the final weights are the trained ones"),
    affected=(">=2.6.1,<=2.6.6",),
    targets=(Target(f"{_CALLBACK}.on_train_end", _on_train_end_unless_averaged),),
    upstream=Upstream(pull_requests=(21396,)),
    impact=Impact(
        "With max_epochs=-1 (the default if max_steps or max_time is set) and StochasticWeightAveraging, "
        "training that ends before swa_epoch_start ends with the initial weights of the model.",
        ("model is untrained after fit with StochasticWeightAveraging", "initial weights after training"),
    ),
    note="The official fix for StochasticWeightAveraging with max_epochs=-1 (pull request 21396) introduced "
    "this bug. A run that reaches swa_epoch_start ends with the same average. Without the patch, remove "
    "StochasticWeightAveraging.",
)
