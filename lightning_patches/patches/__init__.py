"""The catalogue: all patches in the order of their layers, and lookup by name or number.

``<subject>/<patch_name>.py`` has one patch, ``PATCH``, and its builders. Files whose names start with an underscore are
helpers.
"""

from __future__ import annotations

from functools import lru_cache

from lightning_patches.patch import RENAMED, Patch


def index() -> tuple[Patch, ...]:
    """Return the records that a start needs. The code of a patch is imported with the module that it changes."""
    from lightning_patches.patches._index import INDEX

    return INDEX


@lru_cache(maxsize=None)
def all_patches() -> tuple[Patch, ...]:
    """Import and return all patches of the index."""
    return tuple(record.whole for record in index())


def find(key: str) -> tuple[Patch, ...]:
    """Return the patches with this name, or with this number of an issue or PR."""
    name, number = RENAMED.get(key, key), key.lstrip("#")
    return tuple(p for p in all_patches() if name == p.name or number in map(str, p.numbers))
