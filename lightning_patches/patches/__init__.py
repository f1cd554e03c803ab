"""The catalogue: all patches, in the order in which they are layered, and look-up by name or number.

``patches/<subject>/<patch_name>.py`` holds one patch, ``PATCH``. A file whose name begins with an underscore helps the
others of its subject. Files beside this one are named after upstream's, and define several, ``PATCHES``.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from lightning_patches.patch import Patch


@lru_cache(maxsize=None)
def all_patches() -> tuple[Patch, ...]:
    """Every patch there is."""
    found: list[Patch] = []
    apart: list[Patch] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        if module.ispkg:
            subject = importlib.import_module(f"{__name__}.{module.name}")
            for file in pkgutil.iter_modules(subject.__path__):
                if not file.name.startswith("_"):
                    apart.append(importlib.import_module(f"{subject.__name__}.{file.name}").PATCH)
        elif not module.name.startswith("_"):
            found += importlib.import_module(f"{__name__}.{module.name}").PATCHES
    found += sorted(apart, key=lambda patch: patch.name)
    names = [patch.name for patch in found]
    if len(set(names)) != len(names):
        raise ValueError(f"two patches share a name: {sorted(name for name in names if names.count(name) > 1)}")
    return tuple(found)


def find(key: str) -> tuple[Patch, ...]:
    """The patches called ``key``, or concerned with the issue or PR of that number; empty if there is none."""
    number = key.lstrip("#")
    return tuple(p for p in all_patches() if p.name == key or number in map(str, p.numbers))
