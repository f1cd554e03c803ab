"""Which classes a checkpoint may name: subclasses that the program has imported."""

from __future__ import annotations

import sys
from typing import Any, Iterator


def is_imported_subclass(path: Any, cls: type) -> bool:
    """Whether a dotted path leads to a subclass of ``cls`` within a module that is imported already."""
    if not isinstance(path, str):
        return False
    module, _, name = path.rpartition(".")
    while module and module not in sys.modules:  # a class within a class
        module, _, outer = module.rpartition(".")
        name = f"{outer}.{name}"
    if not module:
        return False
    found: Any = sys.modules[module]
    for part in name.split("."):
        # Not getattr(): a module's __getattr__ may import.
        found = getattr(found, "__dict__", {}).get(part)
    if found is None:  # what such a __getattr__ gives has its home further down in the package
        below = f"{module}."
        found = next((c for c in _subclasses(cls) if c.__qualname__ == name and c.__module__.startswith(below)), None)
    return isinstance(found, type) and issubclass(found, cls)


def _subclasses(cls: type) -> Iterator[type]:
    direct: list[type] = type.__subclasses__(cls)
    for subclass in direct:
        yield subclass
        yield from _subclasses(subclass)
