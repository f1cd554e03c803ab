"""Warn when a resumed stateful data loader without a length has lost a batch."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title
from lightning_patches.patches.data.stateful_loader_exact import KEY

_FIT_LOOP = "pytorch.loops.fit_loop:_FitLoop"
_EXACT = "_states_are_exact"
"""Attribute of the fit loop: its states of data loaders are those of the batches that training has seen."""


def _on_load_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_load_checkpoint(self: Any, state_dict: Any) -> None:
        original(self, state_dict)
        setattr(self, _EXACT, KEY in state_dict)

    return on_load_checkpoint


def _setup_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any) -> None:
        has_states = bool(self._combined_loader_states_to_load) and not vars(self).get(_EXACT)
        original(self)
        is_loaded = has_states and not self._combined_loader_states_to_load
        is_prefetched = is_loaded and bool(getattr(self._data_fetcher, "batches", ())) and self.restarting
        if is_prefetched and not self.epoch_loop.batch_progress.is_last_batch:
            notices.warn_once(
                "prefetched-batch-lost",
                "This run is resumed within an epoch, with a stateful data loader without a length. Lightning had "
                "fetched one batch ahead when it saved the state of the loader: this batch is lost. Give the loader a "
                "length, or set LIGHTNING_PATCHES=default,stateful-loader-exact before the checkpoint is saved.",
            )

    return setup_data


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.2.0,<=2.6.6",),
    targets=(
        Target(f"{_FIT_LOOP}.on_load_checkpoint", _on_load_checkpoint),
        Target(f"{_FIT_LOOP}.setup_data", _setup_data),
    ),
    impact=Impact("A stateful data loader without a length loses one batch when a run is resumed within an epoch."),
    after=("stateful-loader-exact", "reload-starts-once"),
    fixed_by=("stateful-loader-exact",),
    note="This patch fixes nothing: it warns once, when such a state is loaded. The opt-in stateful-loader-exact fixes "
    "it. Equivalent to the same program.",
)
