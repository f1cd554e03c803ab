"""With reload_dataloaders_every_n_epochs, each data loader is started once instead of twice."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.loops._saved_batch import run_start_without_iter

_STARTED = "_has_started_reloaded_loader"
"""Attribute of the fit loop: True if the iterator for the epoch that begins exists."""


def starts_twice(loop: Any, data_fetcher: Any) -> bool:
    """True if the epoch loop would start data loaders that the fit loop has already started for the same epoch."""
    started = vars(loop.trainer.fit_loop).pop(_STARTED, False)
    is_unused = data_fetcher.fetched == len(getattr(data_fetcher, "batches", ()))
    return bool(started and is_unused and not loop._restarting and loop.trainer.current_epoch > 0)


def setup_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any) -> None:
        before = self._data_fetcher
        original(self)
        if self.trainer.reload_dataloaders_every_n_epochs and self._data_fetcher is not before:
            setattr(self, _STARTED, True)

    return setup_data


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any, data_fetcher: Any) -> None:
        if starts_twice(self, data_fetcher):
            run_start_without_iter(original, self, data_fetcher)
        else:
            original(self, data_fetcher)

    return on_run_start


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect(
        "order of data", "random values in a run with reloaded data loaders, such as shuffling and dropout"
    ),
    affected=(">=2.1.0,<=2.6.6",),
    targets=(
        Target("pytorch.loops.fit_loop:_FitLoop.setup_data", setup_data),
        Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.on_run_start", _on_run_start),
    ),
    impact=Impact(
        "With reload_dataloaders_every_n_epochs, each data loader except the first is started twice: worker "
        "processes start twice, and a stream loses the items that the first iterator read.",
        (
            "iter called twice with reload_dataloaders_every_n_epochs",
            "IterableDataset skips samples with reload_dataloaders_every_n_epochs",
        ),
    ),
    opt_in="users who reload a stream with reload_dataloaders_every_n_epochs",
    signs=("reload_dataloaders_every_n_epochs IterableDataset",),
    after=("reload-on-resume", "resume-on-last-batch", "mid-epoch-resume"),
    note="Opt-in because each iterator of a DataLoader draws a random number: with one iterator less, a run "
    "that works without the patch gets its shuffled data in another order. The run equals one without "
    "reload_dataloaders_every_n_epochs.",
)
