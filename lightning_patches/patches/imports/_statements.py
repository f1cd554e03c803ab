"""Import statements of one module of Lightning, answered otherwise than those of all others."""

from __future__ import annotations

import builtins
import sys
from typing import Any, Callable

from lightning_patches.engine.distributions import module_name
from lightning_patches.patch import Target


def answered(module: str, answer: Callable[[str, Any], Any], before: str = "") -> Target:
    """An early ``__import__``, which the module's import statements use.

    Args:
        module: ``"pytorch.utilities.imports"``.
        answer: ``answer(name, found)`` returns what an import of ``name`` gets instead of ``found``, which is ``None``
            where it cannot be imported; ``None`` to leave it at that.
        before: first release that does not need it.
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

        # A statement looks for __import__ among the builtins that its module names, which have to be there before the
        # module's code runs. Once the patch is taken back they lead to Python's own.
        itself = sys.modules.get(module_name(namespace, module))
        if itself is not None:
            contents = vars(itself)

            def look_up(*args: Any, **kwargs: Any) -> Any:
                return contents.get("__import__", builtins.__import__)(*args, **kwargs)

            contents["__builtins__"] = {**vars(builtins), "__import__": look_up}
        return import_module

    return Target(f"{module}:__import__", build, adds=True, early=True, before=before)
