"""The catalogue: all patches in the order of their layers, and lookup by name or number.

``<subject>/<patch_name>.py`` has one patch, ``PATCH``, and its builders. Files whose names start with an underscore are
helpers.
"""

from __future__ import annotations

import heapq
import importlib
import pkgutil
from functools import lru_cache
from typing import Iterable

from lightning_patches.patch import RENAMED, Patch


def index() -> tuple[Patch, ...]:
    """Return the records that a start needs. The code of a patch is imported with the module that it changes."""
    from lightning_patches.patches._index import INDEX

    return INDEX


@lru_cache(maxsize=None)
def all_patches() -> tuple[Patch, ...]:
    """Import and return all patches."""
    found: list[Patch] = []
    for subject in pkgutil.iter_modules(__path__):
        if not subject.ispkg:
            continue
        package = importlib.import_module(f"{__name__}.{subject.name}")
        files = [file.name for file in pkgutil.iter_modules(package.__path__) if not file.name.startswith("_")]
        found += [importlib.import_module(f"{package.__name__}.{name}").PATCH for name in files]
    return layered(found)


def layered(patches: Iterable[Patch]) -> tuple[Patch, ...]:
    """Sort patches by name, but each one after the patches in its ``after``.

    Raises:
        ValueError: two patches have the same name, or ``after`` names an unknown patch or forms a cycle.
    """
    given = list(patches)
    names = [patch.name for patch in given]
    if len(set(names)) != len(names):
        raise ValueError(f"two patches share a name: {sorted({name for name in names if names.count(name) > 1})}")
    left = {patch.name: patch for patch in given}
    above: dict[str, list[str]] = {name: [] for name in names}
    for patch in given:
        for below in patch.after:
            if below not in left:
                raise ValueError(f"{patch.name} must come after {below}, which does not exist")
            above[below].append(patch.name)
    waits = {patch.name: len(patch.after) for patch in given}
    free = [name for name in names if not waits[name]]
    heapq.heapify(free)
    ordered: list[Patch] = []
    while free:
        ordered.append(left.pop(heapq.heappop(free)))
        for name in above[ordered[-1].name]:
            waits[name] -= 1
            if not waits[name]:
                heapq.heappush(free, name)
    if left:
        raise ValueError(f"these patches come after one another: {sorted(left)}")
    return tuple(ordered)


def find(key: str) -> tuple[Patch, ...]:
    """Return the patches with this name, or with this number of an issue or PR."""
    name, number = RENAMED.get(key, key), key.lstrip("#")
    return tuple(p for p in all_patches() if name == p.name or number in map(str, p.numbers))
