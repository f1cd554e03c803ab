"""Import hooks: tells :mod:`lightning_patches.apply` when an upstream module has been executed.

wrapt's post-import hooks do the work. Two things are added: a hook of ours never lets an exception reach the user's
import (wrapt drops a hook before it runs, so a raising one would fail the first import and leave the second one
silently unpatched), and ``importlib.reload``, which wrapt does not see, calls the hook again.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Optional

import wrapt

from lightning_patches import _runtime
from lightning_patches.errors import LightningPatchesError

Callback = Callable[[ModuleType], None]

_callbacks: dict[str, Callback] = {}


def watch(module_name: str, callback: Callback) -> None:
    """Call ``callback(module)`` after the module's import and after each reload; now, if it is imported already.

    A second call for the same module replaces the callback.
    """
    known = module_name in _callbacks
    _callbacks[module_name] = callback
    if not any(isinstance(finder, _ReloadFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _ReloadFinder())
    loaded = sys.modules.get(module_name)
    if loaded is not None and getattr(loaded.__spec__, "_initializing", False):
        importlib.import_module(module_name)  # another thread is at it: wait until the module is whole
    if not known:
        wrapt.register_post_import_hook(_fire, module_name)
    elif module_name in sys.modules:
        _fire(sys.modules[module_name])


def unwatch_all() -> None:
    """Forget all callbacks. wrapt's hooks stay registered and do nothing."""
    _callbacks.clear()
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _ReloadFinder)]


def _fire(module: ModuleType) -> None:
    callback = _callbacks.get(module.__name__)
    if callback is None:
        return
    try:
        callback(module)
    except LightningPatchesError:
        raise  # only under strict: the user asked for it
    except Exception:
        _runtime.notice(
            f"internal error while patching {module.__name__}; it is left as it is. Please report this:\n"
            + traceback.format_exc(),
            urgent=True,
        )


class _ReloadFinder:
    """Steps in for ``importlib.reload`` only, which is the one caller that passes the module as ``target``."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if target is None or fullname not in _callbacks:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _ReloadLoader(spec.loader)  # type: ignore[assignment]
                return spec
        return None


class _ReloadLoader(wrapt.ObjectProxy):  # type: ignore[type-arg]
    def exec_module(self, module: Any) -> None:
        loader = self.__wrapped__
        if module.__spec__ is not None:
            module.__spec__.loader = loader
        module.__loader__ = loader
        loader.exec_module(module)
        _fire(module)
