"""Warn when reload_dataloaders_every_n_epochs starts a stream, or worker processes, twice."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title

_MADE = "_iterator_of_reloaded_loader"
"""Attribute of the fit loop: the iterator of the data loaders that it has made anew for the epoch that begins."""


def _setup_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any) -> None:
        before = self._combined_loader
        original(self)
        if before is not None and self._combined_loader is not before:
            vars(self)[_MADE] = self._combined_loader._iterator

    return setup_data


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any, data_fetcher: Any) -> None:
        made = vars(self.trainer.fit_loop).pop(_MADE, None)
        original(self, data_fetcher)
        loaders = self.trainer.fit_loop._combined_loader
        if made is None or loaders._iterator is made:
            return
        if data_fetcher.length is None or any(getattr(loader, "num_workers", 0) for loader in loaders.flattened):
            notices.warn_once(
                "reload-starts-twice",
                "With reload_dataloaders_every_n_epochs, Lightning starts each reloaded data loader twice: worker "
                "processes start twice, and batches of a stream that the first iterator took may be lost. Set "
                "LIGHTNING_PATCHES=default,reload-starts-once.",
            )

    return on_run_start


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.1.0,<=2.6.6",),
    targets=(
        Target("pytorch.loops.fit_loop:_FitLoop.setup_data", _setup_data),
        Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.on_run_start", _on_run_start),
    ),
    impact=Impact(
        "With reload_dataloaders_every_n_epochs, each data loader but the first is started twice: worker processes "
        "start twice, and a stream loses what the first iterator took."
    ),
    after=("reload-starts-once", "warn-prefetched-batch-lost", "stateful-loader-exact"),
    fixed_by=("reload-starts-once",),
    note="This patch fixes nothing: it warns once, if a reloaded data loader has no length, or has worker processes. "
    "The opt-in reload-starts-once fixes it. Equivalent to the same program.",
)
