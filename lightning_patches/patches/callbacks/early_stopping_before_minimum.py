"""EarlyStopping cancels a stop requested before min_epochs if the metric has recovered."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Any, Callable, Iterator

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_STOPPED = ("stopped_epoch", "stopping_reason", "stopping_reason_message")

_pending: weakref.WeakKeyDictionary[Any, dict[int, dict[str, Any]]] = weakref.WeakKeyDictionary()
"""By Trainer and callback id: the state of each callback before it requested a stop ahead of the minimum."""


def _run_early_stopping_check(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _run_early_stopping_check(self: Any, trainer: Any) -> None:
        try:
            can_stop, pending = can_stop_early(trainer.fit_loop), _pending.setdefault(trainer, {})
        except Exception:  # the program's own loop
            can_stop, pending = True, {}
        if can_stop and not pending:
            return original(self, trainer)
        before = trainer.should_stop
        if not before:
            pending.clear()
        elif not pending:  # other code wants to stop
            return original(self, trainer)
        noted = {name: value for name, value in vars(self).items() if name in _STOPPED}
        waited, best = self.wait_count, self.best_score
        trainer.should_stop = False
        try:
            original(self, trainer)
        finally:
            stop = trainer.should_stop
            trainer.should_stop = before or stop
        was_checked = self.wait_count != waited or self.best_score is not best
        if stop and not can_stop:
            pending.setdefault(id(self), noted)
        elif not stop and was_checked and id(self) in pending:
            vars(self).update(pending.pop(id(self)))
            if not pending and not _others_may_stop(trainer, namespace):
                trainer.should_stop = False
        return None

    return _run_early_stopping_check


def can_stop_early(loop: Any) -> bool:
    """True if the run has reached its minimum. The property has another name before 1.9.2."""
    name = "_can_stop_early" if hasattr(type(loop), "_can_stop_early") else "_should_stop_early"
    return bool(getattr(loop, name))


def _others_may_stop(trainer: Any, namespace: str) -> bool:
    """True if the program has code, or a Timer, that may also have requested the stop."""
    known = upstream_module(namespace, "pytorch.callbacks.early_stopping").EarlyStopping
    objects = (*trainer.callbacks, trainer.lightning_module, trainer.datamodule)
    classes = {each for item in objects for each in type(item).__mro__} - {known}
    functions = (value for each in classes for value in vars(each).values())
    return any("should_stop" in code.co_names for each in functions for code in _codes(getattr(each, "__code__", None)))


def _codes(code: Any) -> Iterator[CodeType]:
    if isinstance(code, CodeType):
        yield code
        for each in code.co_consts:
            yield from _codes(each)


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "a run that improves continues after min_epochs or min_steps"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target("pytorch.callbacks.early_stopping:EarlyStopping._run_early_stopping_check", _run_early_stopping_check),
    ),
    upstream=Upstream(issues=(19966,), pull_requests=(21857,)),
    impact=Impact(
        "If EarlyStopping requests a stop before min_epochs or min_steps, the run stops there even if the metric has "
        "improved since.",
        ("training stops at min_epochs although the metric improves", "EarlyStopping ignores patience with min_epochs"),
    ),
    added="0.2.0",
    note="Until the metric recovers, nothing changes: should_stop stays set, and each step is logged. The "
    "patch cancels nothing if a callback or the module sets should_stop, or if there is a Timer. A run "
    "whose metric does not recover stops at the same step as without the patch. Without the patch, choose "
    "a patience that does not run out before min_epochs.",
)
