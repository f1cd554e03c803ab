"""Change the effect of import and class statements in one module of Lightning."""

from __future__ import annotations

import builtins
import sys
from typing import Any, Callable

from lightning_patches.engine.distributions import module_name
from lightning_patches.patch import Target


def answered(module: str, answer: Callable[[str, Any], Any], before: str = "") -> Target:
    """Return a target that gives the module its own ``__import__`` for its import statements.

    Args:
        module: ``"pytorch.utilities.imports"``.
        answer: ``answer(name, found)`` returns the result of an import of ``name``, or ``None`` for no change.
            ``found`` is the module, or ``None`` if it can't be imported.
        before: first release that does not need this target.
    """

    def build(original: None, namespace: str) -> Callable[..., Any]:
        def import_module(name: str, *args: Any, **kwargs: Any) -> Any:
            try:
                found = builtins.__import__(name, *args, **kwargs)
            except Exception:
                instead = answer(name, None)
                if instead is None:
                    raise
                return instead
            return answer(name, found) or found

        look_up_in_module("__import__", module, namespace)
        return import_module

    return Target(f"{module}:__import__", build, adds=True, early=True, before=before)


def look_up_in_module(builtin: str, module: str, namespace: str) -> None:
    """Let a module's statements use the ``__import__`` or ``__build_class__`` that an early target adds to the module.

    A statement looks up these functions in its module's ``__builtins__``, so that must be set before the module runs.
    After the patch is undone, the lookup returns Python's function. If the patch is applied again, the lookup is kept.
    """
    itself = sys.modules.get(module_name(namespace, module))
    if itself is None:
        return
    contents, pythons = vars(itself), getattr(builtins, builtin)
    present = contents.get("__builtins__")
    if isinstance(present, dict) and getattr(present.get(builtin), "__module__", "") == __name__:
        return

    def look_up(*args: Any, **kwargs: Any) -> Any:
        return contents.get(builtin, pythons)(*args, **kwargs)

    contents["__builtins__"] = {**vars(builtins), builtin: look_up}
