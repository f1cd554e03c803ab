"""Read the ``ignore`` argument that a class passes to ``save_hyperparameters``."""

from __future__ import annotations

from typing import Any


def names_in(ignore: Any) -> list[str]:
    if isinstance(ignore, str):
        return [ignore]
    return [name for name in ignore if isinstance(name, str)] if isinstance(ignore, (list, tuple)) else []
