"""A stateful data loader continues exactly where training stopped."""

import copy
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.loops import _saved_batch
from lightning_patches.patches.loops._next_pass import begin_pass

_FIT_LOOP = "pytorch.loops.fit_loop:_FitLoop"
_EPOCH_LOOP = "pytorch.loops.training_epoch_loop:_TrainingEpochLoop"
_STATES = "_states_without_prefetched"
"""Attribute of the fetcher: the states of the data loaders before it fetched the next batch ahead."""
_ENDED = "_restored_pass_has_ended"
"""Attribute of the fit loop: True if the data loaders were restored to their state at the end of an epoch."""
KEY = "combined_loader_without_prefetched"
"""Key in the state of the fit loop: True if the saved states don't count the batch that was fetched ahead."""


def _next(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __next__(self: Any) -> Any:  # noqa: N807
        if self.length is not None or not self.batches:
            return original(self)
        states = copy.deepcopy(self.combined_loader._state_dicts())
        batch = original(self)
        setattr(self, _STATES, states if self.batches else None)
        return batch

    return __next__


def _on_save_checkpoint(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def on_save_checkpoint(self: Any) -> Any:
        state = original(self)
        states = getattr(self._data_fetcher, _STATES, None)
        if state.get("combined_loader"):
            state[KEY] = True
            if states and getattr(self._data_fetcher, "batches", ()):
                state["combined_loader"] = states
        return state

    return on_save_checkpoint


def _load_combined_loader_states(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_combined_loader_states(self: Any) -> None:
        epoch, every = self.epoch_progress.current, self.trainer.reload_dataloaders_every_n_epochs
        is_reloaded = every and epoch.processed % every == 0
        has_ended = not self.restarting and epoch.ready == epoch.processed > 0
        if self._combined_loader_states_to_load and has_ended and not is_reloaded:
            self._combined_loader._load_state_dicts(self._combined_loader_states_to_load)
            self._combined_loader_states_to_load = []
            setattr(self, _ENDED, True)
        original(self)

    return load_combined_loader_states


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any, data_fetcher: Any) -> None:
        if self._restarting or not vars(self.trainer.fit_loop).pop(_ENDED, False):
            original(self, data_fetcher)
            return
        # If the fetcher already has batches, the restored epoch was complete, and the next one has begun.
        if not getattr(data_fetcher, "batches", ()):
            begin_pass(data_fetcher, self.trainer.fit_loop.max_batches)
        _saved_batch.may_be_empty(self)
        _saved_batch.run_start_without_iter(original, self, data_fetcher)

    return on_run_start


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("order of data", "the data of a run that is resumed with a stateful loader"),
    affected=(">=2.2.0,<=2.6.6",),
    targets=(
        Target("pytorch.loops.fetchers:_PrefetchDataFetcher.__next__", _next),
        Target(f"{_FIT_LOOP}.on_save_checkpoint", _on_save_checkpoint),
        Target(f"{_FIT_LOOP}._load_combined_loader_states", _load_combined_loader_states),
        Target(f"{_EPOCH_LOOP}.advance", _saved_batch.advance),
        Target(f"{_EPOCH_LOOP}.on_run_start", _on_run_start),
    ),
    impact=Impact(
        "In a resumed run, a stateful data loader without a length loses one batch, because Lightning saves "
        "the loader's state after fetching that batch ahead. If a checkpoint was saved at the end of an epoch, "
        "no stateful data loader gets its state back: streams start over from the beginning.",
        (
            "one prefetched batch is lost at each resume",
            "one batch is missing after resuming with StatefulDataLoader and an IterableDataset",
        ),
    ),
    opt_in="users who resume with a stateful data loader, such as torchdata's StatefulDataLoader",
    signs=("StatefulDataLoader ckpt_path",),
    after=("validation-due-on-resume", "mid-epoch-resume", "resume-single-iteration", "reload-starts-once"),
    note="Opt-in because it calls state_dict() of a stateful data loader without a length for each batch, and "
    "load_state_dict() after the end of an epoch; some loaders may not expect these calls. The resumed "
    "run equals the uninterrupted run.",
)
