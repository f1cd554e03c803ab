"""Import hooks: tells :mod:`lightning_patches.apply` when an upstream module has been executed.

wrapt's post-import hooks do the work. Two things are added: a hook of ours never lets an exception reach the user's
import unless ``strict`` asks for it, and it is called each time the module is executed: wrapt drops a hook before it
runs, so that ``importlib.reload``, an import after the module was taken out of ``sys.modules``, and the second try at
an import that failed would all go by silently unpatched. For what has to stand before a module runs, wrapt has no
hook; :func:`watch_before` does that alone.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Optional

import wrapt

from lightning_patches import _runtime
from lightning_patches.errors import PatchError

Callback = Callable[[ModuleType, bool], None]
"""``callback(module, reloaded)``; ``reloaded`` tells that the code ran again in a module object known before."""

_callbacks: dict[str, Callback] = {}
_early: dict[str, Callback] = {}
"""Called before the module is executed."""
_registered: set[str] = set()
"""Modules for which wrapt has, or had, a hook of ours."""
_spent: set[str] = set()
"""Those whose hook wrapt has called and dropped: from then on they are ours to watch."""


def watch(module_name: str, callback: Callback) -> None:
    """Call ``callback(module, reloaded)`` after each execution of the module; now, if it is imported already.

    A second call for the same module replaces the callback.
    """
    _callbacks[module_name] = callback
    _stand_in_front()
    _wait_for(module_name)
    if module_name not in _registered:
        # Called now, if the module is there.
        wrapt.register_post_import_hook(lambda module: _first_time(module_name, module), module_name)
        _registered.add(module_name)
    elif sys.modules.get(module_name) is not None:
        _fire(module_name, sys.modules[module_name])


def watch_before(module_name: str, callback: Callback) -> None:
    """Call ``callback(module, False)`` before each execution of the module, when it is still empty; and now, if it is
    imported already.

    A second call for the same module replaces the callback.
    """
    _early[module_name] = callback
    _stand_in_front()
    _wait_for(module_name)
    if sys.modules.get(module_name) is not None:
        _call(callback, sys.modules[module_name], False)


def find_spec(
    fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
) -> Optional[ModuleSpec]:
    """What our finder finds: for a finder that has put ours in front of itself while Python was asking it."""
    for finder in sys.meta_path:
        if isinstance(finder, _AgainFinder):
            return finder.find_spec(fullname, path, target)
    return None


def _stand_in_front() -> None:
    if not any(isinstance(finder, _AgainFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AgainFinder())


def wait_for_imports(roots: Sequence[str]) -> None:
    """Let other threads finish what they import of these packages: a half executed module has no functions to swap,
    and its ``from x import f`` may be between the reading of the original and the storing of it."""
    for name in list(sys.modules):
        if name.partition(".")[0] in roots:
            _wait_for(name)


def _wait_for(module_name: str) -> None:
    spec = getattr(sys.modules.get(module_name), "__spec__", None)
    if getattr(spec, "_initializing", False):
        # Returns at once if it is this very thread that imports the module. An error is the other thread's to tell.
        with contextlib.suppress(Exception):
            importlib.import_module(module_name)


def unwatch_all() -> None:
    """Forget all callbacks. wrapt's hooks stay registered and do nothing."""
    _callbacks.clear()
    _early.clear()
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _AgainFinder)]


def _first_time(module_name: str, module: ModuleType) -> None:
    _spent.add(module_name)
    _fire(module_name, module)


def _fire(module_name: str, module: ModuleType, reloaded: bool = False) -> None:
    callback = _callbacks.get(module_name)
    if callback is not None:
        _call(callback, module, reloaded)


def _call(callback: Callback, module: ModuleType, reloaded: bool) -> None:
    try:
        callback(module, reloaded)
    except PatchError:
        raise  # only under strict: the user asked for it
    except Exception:
        name = getattr(module, "__name__", module)
        _runtime.notice(
            f"internal error while patching {name}; it is left as it is. Please report this:\n"
            + traceback.format_exc(),
            urgent=True,
        )


class _AgainFinder:
    """Steps in where wrapt's hook is spent: for ``importlib.reload``, which is the one caller that passes the module as
    ``target``, and for a module that is imported anew. And where something has to happen before the module runs."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        again = fullname in _callbacks and (target is not None or fullname in _spent)
        if not again and fullname not in _early:
            return None
        # Those before us had their turn. Asking them again would go round in circles with a second copy of us.
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            if not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _AgainLoader(spec.loader, again, target is not None)  # type: ignore[assignment]
                return spec
        return None


class _AgainLoader(wrapt.ObjectProxy):  # type: ignore[type-arg]
    def __init__(self, loader: Any, again: bool, reloads: bool) -> None:
        super().__init__(loader)
        self._self_again = again
        self._self_reloads = reloads

    def exec_module(self, module: Any) -> None:
        loader = self.__wrapped__
        if module.__spec__ is not None:
            module.__spec__.loader = loader
        module.__loader__ = loader
        early = _early.get(module.__name__)
        if early is not None:
            _call(early, module, False)
        loader.exec_module(module)
        if self._self_again:
            _fire(module.__name__, module, self._self_reloads)
