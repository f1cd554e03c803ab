"""The pass of the data loaders after one that was restored from a checkpoint at the end of an epoch."""

import inspect
from typing import Any


def is_cut(data_fetcher: Any, batches: float) -> bool:
    """True if an epoch of so many batches ends before the last batch of a data loader."""
    for loader in data_fetcher.combined_loader.flattened:
        try:
            if len(loader) > batches:
                return True
        except (TypeError, NotImplementedError):
            pass  # a stream
    return False


def begins_next_pass(fit_loop: Any, data_fetcher: Any) -> bool:
    """True if the next pass after a restored one has begun. Begins it if epochs end before the loaders do."""
    if getattr(data_fetcher, "batches", ()):
        return True  # without a length, the fetcher finds the end of the restored pass and begins the next one
    is_reloaded = fit_loop._last_train_dl_reload_epoch == fit_loop.epoch_progress.current.processed
    if is_reloaded or not is_cut(data_fetcher, fit_loop.max_batches):
        return False
    begin_pass(data_fetcher, fit_loop.max_batches)
    return True


def begin_pass(data_fetcher: Any, batches: float) -> None:
    """Begin the next pass of the data loaders after a restored one, of which an epoch has so many batches."""
    if is_cut(data_fetcher, batches):
        for iterator in data_fetcher.combined_loader._iterator.iterators:
            if inspect.isgenerator(iterator) and inspect.getgeneratorstate(iterator) == inspect.GEN_CREATED:
                next(iterator, None)  # a generator reads the restored state when its first batch is fetched
    iter(data_fetcher)
