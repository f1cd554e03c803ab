"""Let a resumed epoch loop do what follows the batch at whose end the checkpoint was saved."""

from typing import Any, Callable

from lightning_patches.engine.functions import stock_of
from lightning_patches.patches.loops._next_pass import begins_next_pass

_CHECK = "_should_check_val_fx"
_REST = "_rest_of_saved_batch"
"""Attribute of the epoch loop: True if its next `advance` must train nothing, and only finish the saved batch."""
_RESTORED = "_restored_pass"
"""Attribute of the fit loop: True if the data loaders were restored to a pass whose batches have all been used."""
_MAY_BE_EMPTY = "_pass_may_be_empty"
"""Attribute of the epoch loop: True if the next batch is the first one after such a pass."""


def finish(loop: Any) -> None:
    """Make the epoch loop do what follows the saved batch: a due validation, schedulers, and the end of the epoch."""
    setattr(loop, _REST, True)


def pass_is_over(loop: Any) -> None:
    """Make the fit loop begin the next pass over the data loaders, because the restored pass is over."""
    setattr(loop.trainer.fit_loop, _RESTORED, True)


def may_be_empty(loop: Any) -> None:
    """Make the epoch loop begin another pass if its next pass turns out to be empty."""
    setattr(loop, _MAY_BE_EMPTY, True)


def is_stateful(loop: Any) -> bool:
    """True if a data loader has a state to restore."""
    return any(hasattr(loader, "load_state_dict") for loader in loop.trainer.fit_loop._combined_loader.flattened)


def is_validation_due(loop: Any) -> bool:
    """True if a validation follows the batch on which the epoch loop has just trained."""
    *_, lightnings = (vars(cls)[_CHECK] for cls in type(loop).__mro__ if _CHECK in vars(cls))
    takes_fetcher = (
        stock_of(lightnings).__code__.co_argcount > 1
    )  # since 2.1; the program's method may take any arguments
    return bool(loop._should_check_val_fx(*[loop.trainer.fit_loop._data_fetcher] * takes_fetcher))


def advance(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def advance(self: Any, data_fetcher: Any) -> None:
        if vars(self).pop(_REST, False):
            self.val_loop.restarting = False
            return  # on_advance_end does what follows the batch
        if not vars(self).pop(_MAY_BE_EMPTY, False):
            original(self, data_fetcher)
            return
        try:
            original(self, data_fetcher)
        except StopIteration:
            if self.batch_progress.current.ready:
                raise
            iter(data_fetcher)  # the loader has applied its restored state only now, and so ended the restored pass
            original(self, data_fetcher)

    return advance


def run_start_without_iter(original: Callable[..., None], loop: Any, data_fetcher: Any) -> None:
    """Call the epoch loop's `on_run_start` so that it does not start the data loaders: they have been started."""
    loop._restarting = True
    try:
        original(loop, data_fetcher)
    finally:
        loop._restarting = False


def on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any, data_fetcher: Any) -> None:
        fit_loop = self.trainer.fit_loop
        is_next = not self._restarting and vars(fit_loop).pop(_RESTORED, False)
        if is_next and begins_next_pass(fit_loop, data_fetcher):
            run_start_without_iter(original, self, data_fetcher)
            return
        original(self, data_fetcher)
        if is_next:
            may_be_empty(self)

    return on_run_start
