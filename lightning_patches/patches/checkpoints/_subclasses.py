"""Find out if a class that a checkpoint names is a subclass that the program has imported."""

from __future__ import annotations

import sys
from typing import Any, Iterator


def is_imported_subclass(path: Any, cls: type) -> bool:
    """True if a dotted path names a subclass of ``cls`` in a module that is already imported."""
    if not isinstance(path, str):
        return False
    module, _, name = path.rpartition(".")
    while module and module not in sys.modules:  # a nested class
        module, _, outer = module.rpartition(".")
        name = f"{outer}.{name}"
    if not module:
        return False
    found: Any = sys.modules[module]
    for part in name.split("."):
        # Not getattr(): a module's __getattr__ may import.
        found = getattr(found, "__dict__", {}).get(part)
    if found is None:  # the package may export the class from a deeper module
        below = f"{module}."
        found = next((c for c in _subclasses(cls) if c.__qualname__ == name and c.__module__.startswith(below)), None)
    return isinstance(found, type) and issubclass(found, cls)


def _subclasses(cls: type) -> Iterator[type]:
    direct: list[type] = type.__subclasses__(cls)
    for subclass in direct:
        yield subclass
        yield from _subclasses(subclass)
