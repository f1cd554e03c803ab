"""TQDMProgressBar shows the total and the epoch when training is resumed within an epoch."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_TQDM = "pytorch.callbacks.progress.tqdm_progress"


def _on_train_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_start(self: Any, *args: Any) -> None:
        original(self, *args)
        trainer: Any = getattr(self, "_trainer", None)  # None in the program's own loop
        if getattr(getattr(trainer, "fit_loop", None), "restarted_mid_epoch", False) is True:
            # on_train_epoch_start is not called
            self.train_progress_bar.total = upstream_module(namespace, _TQDM).convert_inf(self.total_train_batches)
            self.train_progress_bar.set_description(f"Epoch {trainer.current_epoch}")

    return on_train_start


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    affected=(">=2.5.0,<=2.6.6",),
    targets=(
        Target(
            f"{_TQDM}:TQDMProgressBar.on_train_start",
            _on_train_start,
            stock=("self.on_train_epoch_start", "self.total_train_batches"),
        ),
    ),
    upstream=Upstream(issues=(20603,), proposed=(21806,)),
    impact=Impact(
        "With TQDMProgressBar, training that is resumed within an epoch shows neither the number of batches nor the "
        "epoch until the next epoch starts.",
        ("progress bar has no total after resuming within an epoch", "progress bar shows Training: 3it after a resume"),
    ),
)
