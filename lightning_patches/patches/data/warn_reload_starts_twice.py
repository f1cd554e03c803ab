"""Warn when reload_dataloaders_every_n_epochs starts a stream, or worker processes, twice."""

import inspect
from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import Notes, observe, warn, warning
from lightning_patches.patches.data import reload_starts_once

_made = Notes()
"""By fit loop: the iterator of the data loaders that it has made anew for the epoch that begins."""


def _setup_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def after(loader: Any, _: None, self: Any) -> None:
        if loader is not None and self._combined_loader is not loader:
            _made.add(self, self._combined_loader._iterator)

    return observe(original, before=lambda self: self._combined_loader, after=after)


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=lambda self, *_: _made.take(self.trainer.fit_loop), after=_after)


def _after(made: Any, _: None, self: Any, data_fetcher: Any) -> None:
    loaders = self.trainer.fit_loop._combined_loader
    if made is None or loaders._iterator is made:
        return
    if data_fetcher.length is None or any(inspect.getattr_static(one, "num_workers", 0) for one in loaders.flattened):
        warn(
            "reload-starts-twice",
            "With reload_dataloaders_every_n_epochs, Lightning starts each reloaded data loader twice: worker "
            "processes start twice, and batches of a stream that the first iterator took may be lost. Set "
            "LIGHTNING_PATCHES=default,reload-starts-once.",
        )


PATCH = warning(
    Target("pytorch.loops.fit_loop:_FitLoop.setup_data", _setup_data),
    Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.on_run_start", _on_run_start),
    fixes=(reload_starts_once,),
    added="0.3.0",
    after=("warn-resumed-run", "stateful-loader-exact"),
    when=", if a reloaded data loader has no length, or has worker processes",
)
