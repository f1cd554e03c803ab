"""Restore what a run has changed when it ends, also in an error or Ctrl+C, and notes about objects."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, Iterator, Tuple


class Notes(Dict[int, Tuple[Any, Any]]):
    """Notes about objects, which are freed as usual. Nothing is added to an object, and its class is not used."""

    def add(self, about: Any, note: Any) -> None:
        key = id(about)
        self[key] = weakref.ref(about, lambda _: self.pop(key, None)), note

    def find(self, about: Any, default: Any = None) -> Any:
        return self.get(id(about), (None, default))[1]

    def take(self, about: Any, default: Any = None) -> Any:
        """Return the note about an object, and remove it."""
        return self.pop(id(about), (None, default))[1]


def after_stage(restore: Callable[[Any], None], on_error_only: bool = True) -> Callable[..., Any]:
    """Return a builder for ``Trainer._run_stage``, which runs an evaluation, or the sanity check and training.

    Args:
        restore: called with the trainer, before on_exception and teardown. Its errors must not replace the run's error.
        on_error_only: don't call it after a stage without an error.
    """

    def build(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
        def _run_stage(self: Any) -> Any:
            is_done = False
            try:
                result = original(self)
                is_done = True
                return result
            finally:
                if not (is_done and on_error_only):
                    try:
                        restore(self)
                    except Exception:
                        pass

        return _run_stage

    return build


def module_of(trainer: Any) -> Any:
    """Return the module of a run. The property ``lightning_module`` is the strategy's, which may be the program's."""
    return object.__getattribute__(trainer.strategy, "__dict__").get("_lightning_module")


def named_modules(module: Any, name: str = "", seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Yield the names and modules of ``named_modules()``, which is not called, since the program may override it."""
    if module is not None and id(module) not in seen:
        yield name, module
        for child, submodule in vars(module).get("_modules", {}).items():
            yield from named_modules(submodule, f"{name}.{child}" if name else child, seen | {id(module)})
