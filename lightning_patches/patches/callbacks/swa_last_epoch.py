"""StochasticWeightAveraging averages the weights at the end of each epoch."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target

_CALLBACK = "pytorch.callbacks.stochastic_weight_avg:StochasticWeightAveraging"


def _on_train_epoch_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_epoch_start(self: Any, trainer: Any, pl_module: Any) -> None:
        before, self._latest_update_epoch = self._latest_update_epoch, trainer.current_epoch  # no update yet
        original(self, trainer, pl_module)
        self._latest_update_epoch = before

    return on_train_epoch_start


def _on_train_epoch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_epoch_end(self: Any, trainer: Any, *args: Any) -> None:
        epoch = trainer.current_epoch
        if self._initialized and self.swa_start <= epoch <= self.swa_end and epoch > self._latest_update_epoch:
            self.update_parameters(self._average_model, trainer.lightning_module, self.n_averaged, self._avg_fn)
            self._latest_update_epoch = epoch
        original(self, trainer, *args)

    return on_train_epoch_end


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect(
        "numbers", "the average contains the weights after the last epoch, and not those before swa_epoch_start"
    ),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"{_CALLBACK}.on_train_epoch_start", _on_train_epoch_start, stock=("self",)),
        Target(f"{_CALLBACK}.on_train_epoch_end", _on_train_epoch_end, stock=("self",)),
    ),
    impact=Impact(
        "StochasticWeightAveraging averages the weights at the start of each epoch. So the last epoch has no "
        "effect on the averaged model, and the average contains weights from before swa_epoch_start.",
        ("last epoch has no effect with StochasticWeightAveraging",),
    ),
    opt_in="users who train with StochasticWeightAveraging",
    signs=("StochasticWeightAveraging",),
    after=("swa-stale-gradients",),
    note="The patch is equivalent to a subclass that averages at the end of each epoch, as in the example of "
    "torch.optim.swa_utils. Opt-in because all runs with the callback end with other weights. Subclasses "
    "are unchanged.",
)
