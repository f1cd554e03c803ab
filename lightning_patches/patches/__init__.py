"""The catalogue: all patches, in the order in which they are layered, and look-up by name or number.

One file per upstream file, named as upstream names it, or after its subject where several upstream files are patched or
a diff carries the file into the fork. A file takes part by defining ``PATCHES``; one whose name begins with an
underscore helps others.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from lightning_patches.patch import Patch


@lru_cache(maxsize=None)
def all_patches() -> tuple[Patch, ...]:
    """Every patch there is. Files in alphabetical order, patches in the order of their file."""
    found: list[Patch] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        if not module.name.startswith("_"):
            found += importlib.import_module(f"{__name__}.{module.name}").PATCHES
    names = [patch.name for patch in found]
    if len(set(names)) != len(names):
        raise ValueError(f"two patches share a name: {sorted(name for name in names if names.count(name) > 1)}")
    return tuple(found)


def find(key: str) -> tuple[Patch, ...]:
    """The patches called ``key``, or concerned with the issue or PR of that number; empty if there is none."""
    number = key.lstrip("#")
    return tuple(p for p in all_patches() if p.name == key or number in map(str, p.numbers))
