"""All patches, in the order in which they are layered, and look-up by name or number.

A file in ``patches/`` takes part by defining ``PATCHES``; nothing has to be registered anywhere else.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from lightning_patches import patches
from lightning_patches.patch import Patch


@cache
def all_patches() -> tuple[Patch, ...]:
    """Every patch there is. Files in alphabetical order, patches in the order of their file."""
    found: list[Patch] = []
    for module in sorted(pkgutil.iter_modules(patches.__path__), key=lambda info: info.name):
        found += importlib.import_module(f"{patches.__name__}.{module.name}").PATCHES
    names = [patch.name for patch in found]
    if len(set(names)) != len(names):
        raise ValueError(f"two patches share a name: {sorted(name for name in names if names.count(name) > 1)}")
    return tuple(found)


def find(key: str) -> tuple[Patch, ...]:
    """The patches called ``key``, or concerned with the issue or PR of that number; empty if there is none."""
    number = key.lstrip("#")
    return tuple(p for p in all_patches() if p.name == key or number in map(str, p.numbers))
