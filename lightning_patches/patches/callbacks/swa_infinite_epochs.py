"""StochasticWeightAveraging averages weights in a run with max_epochs=-1."""

import sys
from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.stochastic_weight_avg:StochasticWeightAveraging"

_ENDLESS = -1

_WAYS_TO_END = ("self.swa_end", "self.on_fit_start", "self.on_train_end", "self.transfer_weights")


def _swa_end(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def swa_end(self: Any) -> Any:
        return float("inf") if self._max_epochs == _ENDLESS else original(self)

    return swa_end


def _on_fit_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_fit_start(self: Any, trainer: Any, pl_module: Any) -> None:
        if isinstance(self._swa_epoch_start, float) and trainer.max_epochs == _ENDLESS:
            notices.report_misuse(
                "swa-infinite-epochs",
                f"StochasticWeightAveraging(swa_epoch_start={self._swa_epoch_start}) is a fraction of all epochs,"
                " and max_epochs is -1 (the Trainer's default next to max_steps or max_time): no weights are averaged"
                " in this run. Pass the number of an epoch as swa_epoch_start.",
            )
            self._swa_epoch_start = sys.maxsize
        original(self, trainer, pl_module)
        if self._max_epochs == _ENDLESS:
            # The original adds an epoch for batch norm statistics, which turns -1 into 0 epochs.
            trainer.fit_loop.max_epochs = _ENDLESS

    return on_fit_start


def _on_train_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_end(self: Any, trainer: Any, pl_module: Any) -> None:
        original(self, trainer, pl_module)
        if self._initialized and self._max_epochs == _ENDLESS:
            self.transfer_weights(self._average_model, pl_module)

    return on_train_end


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "weights are averaged"),
    affected=(">=1.8.0,<2.6.1",),
    targets=(
        Target(f"{_CALLBACK}.swa_end", _swa_end, stock=_WAYS_TO_END),
        Target(f"{_CALLBACK}.on_fit_start", _on_fit_start, stock=_WAYS_TO_END),
        Target(f"{_CALLBACK}.on_train_end", _on_train_end, stock=_WAYS_TO_END),
    ),
    upstream=Upstream(
        pull_requests=(21396,),
        commit="f3f6605e1a",
        fixed_in="2.6.1",
        tests=(
            "tests/tests_pytorch/callbacks/test_stochastic_weight_avg.py::test_swa_with_infinite_epochs_and_batchnorm",
        ),
    ),
    impact=Impact(
        "With max_epochs=-1 (the default if max_steps or max_time is set), StochasticWeightAveraging does "
        "nothing, and a model with batch norm is not trained at all.",
        ("weights are not averaged", "SWA has no effect with max_steps", "fit ends at once, after 0 steps"),
        consequences=(
            Consequence(
                (
                    "(ckpt_path='best')` is set but `ModelCheckpoint` is not configured to save the best model",
                    "callback_metrics[ ... KeyError: '...",
                ),
                r"Trainer\.fit.? stopped: .?max_epochs=0.? reached",
                "fit ended after 0 epochs, as it does with StochasticWeightAveraging and max_epochs=-1",
            ),
        ),
    ),
    note="Batch norm statistics stay those of the last epoch, as in the official fix, because there is no "
    "further epoch to update them. A run that ends before swa_epoch_start keeps its trained weights; the "
    "official fix replaces them with the initial ones. If swa_epoch_start is a fraction (the default is "
    "0.8), the patch warns and nothing is averaged; the official fix raises an error. To keep the trained "
    "weights of a longer run, remove the callback.",
)
