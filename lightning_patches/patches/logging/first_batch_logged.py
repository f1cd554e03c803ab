"""The first batch of an epoch counts in logged means when two hooks log in turn."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target

_CONNECTOR = "pytorch.trainer.connectors.logger_connector.logger_connector"
_HOOKS = "_hooks_of_batch"
"""Attribute of the connector: the names of the hooks that have logged in the current batch."""


def _on_batch_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_batch_start(self: Any, *args: Any, **kwargs: Any) -> None:
        setattr(self, _HOOKS, set())
        original(self, *args, **kwargs)

    return on_batch_start


def _should_reset_tensors(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def should_reset_tensors(self: Any, fx: str) -> bool:
        if not original(self, fx):
            return False
        state = vars(self)
        if _HOOKS in state and state.get("_first_loop_iter", state.get("_batch_idx")) is not None:  # in a batch
            if fx in state[_HOOKS]:
                return False
            state[_HOOKS].add(fx)
        return True

    return should_reset_tensors


def _targets(name: str, since: str = "", before: str = "") -> tuple[Target, ...]:
    bounds = {key: value for key, value in (("since", since), ("before", before)) if value}
    return (
        Target(f"{_CONNECTOR}:{name}.on_batch_start", _on_batch_start, **bounds),
        Target(f"{_CONNECTOR}:{name}.should_reset_tensors", _should_reset_tensors, **bounds),
    )


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "epoch metrics include the first batch"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(*_targets("_LoggerConnector", since="2.0.0"), *_targets("LoggerConnector", before="2.0.0")),
    impact=Impact(
        "If two hooks log in turn, such as training_step and on_before_optimizer_step in manual optimization, "
        "epoch metrics lack the first batch of each epoch. ModelCheckpoint and EarlyStopping decide by wrong values.",
        (
            "the epoch mean of self.log in manual optimization lacks the first batch",
            "grad norm logged in on_before_optimizer_step changes the logged loss of the epoch",
        ),
        would_tell="that two hooks of the module call self.log in the same batch, one of them before and after the other",
    ),
    note="Values that are left of an earlier run are still reset at a hook's first log.",
)
