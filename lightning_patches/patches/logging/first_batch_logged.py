"""The first batch of an epoch counts in logged means when two hooks log in turn."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target

_CONNECTOR = "pytorch.trainer.connectors.logger_connector.logger_connector"
_HOOKS = "_hooks_of_batch"
"""Attribute of the connector: the names of the hooks that have logged in the current batch."""


def is_in_batch(connector: Any) -> bool:
    """True from the start of a batch until the epoch's end."""
    state = vars(connector)
    return state.get("_first_loop_iter", state.get("_batch_idx")) is not None


def _on_batch_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_batch_start(self: Any, *args: Any, **kwargs: Any) -> None:
        setattr(self, _HOOKS, set())
        original(self, *args, **kwargs)

    return on_batch_start


def _should_reset_tensors(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def should_reset_tensors(self: Any, fx: str) -> bool:
        if not original(self, fx):
            return False
        hooks = vars(self).get(_HOOKS)
        if hooks is not None and is_in_batch(self):
            if fx in hooks:
                return False
            hooks.add(fx)
        return True

    return should_reset_tensors


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "epoch metrics include the first batch"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTOR}:_LoggerConnector.on_batch_start", _on_batch_start, since="2.0.0"),
        Target(f"{_CONNECTOR}:_LoggerConnector.should_reset_tensors", _should_reset_tensors, since="2.0.0"),
        Target(f"{_CONNECTOR}:LoggerConnector.on_batch_start", _on_batch_start, before="2.0.0"),
        Target(f"{_CONNECTOR}:LoggerConnector.should_reset_tensors", _should_reset_tensors, before="2.0.0"),
    ),
    impact=Impact(
        "If two hooks log in turn, such as training_step and on_before_optimizer_step in manual optimization, "
        "epoch metrics lack the first batch of each epoch. ModelCheckpoint and EarlyStopping decide by wrong values.",
        (
            "the epoch mean of self.log in manual optimization lacks the first batch",
            "grad norm logged in on_before_optimizer_step changes the logged loss of the epoch",
        ),
        would_tell="that a hook calls self.log twice in a batch, and another hook calls it in between",
    ),
    note="Values that are left of an earlier run are still reset at a hook's first log.",
)
