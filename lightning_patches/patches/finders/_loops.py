"""The loops that a finder runs and changes."""

from __future__ import annotations

from typing import Any, Iterator

LOOP_FLAGS = (
    "_restarting",
    "_loaded_from_state_dict",
    "_resuming_from_checkpoint",
    "_restart_stage",
    "_combined_loader_states_to_load",
)


def loops(trainer: Any) -> Iterator[Any]:
    """Yield the active loop, the fit loop, and their nested loops."""
    waiting = [trainer.fit_loop, trainer._active_loop]
    seen: set[int] = set()
    while waiting:
        loop = waiting.pop()
        if loop is not None and id(loop) not in seen:
            seen.add(id(loop))
            yield loop
            waiting += [child for child in vars(loop).values() if hasattr(child, "_restarting")]


def val_source(loop: Any) -> Any:
    """Return the data source of the validation in fit; ``None`` for another loop or a stand-in."""
    return getattr(getattr(getattr(loop, "epoch_loop", None), "val_loop", None), "_data_source", None)
