"""Warn when a resumed EarlyStopping takes a different patience from the checkpoint."""

from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, stored, warn, warning
from lightning_patches.patches.callbacks import early_stopping_patience


def _load_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=lambda self, *_, **__: stored(self, "patience"), after=_after)


def _after(given: int, _: None, self: Any, *__: Any, **___: Any) -> None:
    loaded = stored(self, "patience")
    if loaded != given:
        warn(
            "early-stopping-patience",
            f"EarlyStopping has the patience of the checkpoint, {loaded}, and not the {given} that the "
            "program gives. Set it after the checkpoint was loaded, for example in on_train_start, or set "
            "LIGHTNING_PATCHES=default,early-stopping-patience.",
        )


PATCH = warning(
    Target("pytorch.callbacks.early_stopping:EarlyStopping.load_state_dict", _load_state_dict),
    fixes=(early_stopping_patience,),
    added="0.3.0",
)
