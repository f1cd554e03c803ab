"""The selection of ``LIGHTNING_PATCHES``, the resulting verdicts, and their descriptions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Optional

from lightning_patches import patches as catalogue
from lightning_patches.engine import toggle
from lightning_patches.engine.patcher import Patcher
from lightning_patches.engine.verdicts import Entry, entries
from lightning_patches.errors import ToggleError

VERDICTS = (
    "pending",
    "applied",
    "disabled",
    "not-supported",
    "drifted",
    "failed",
    "fixed-upstream",
    "not-affected",
    "not-known",
)
"""Verdicts in the order of the summary; the manual explains them."""


@dataclass(frozen=True)
class Toggle:
    """The value of ``LIGHTNING_PATCHES`` and its parsed selection; ``selection`` is ``None`` if the value is
    invalid."""

    value: Optional[str]
    selection: Optional[toggle.Selection]
    error: Optional[str] = None


def read_toggle() -> Toggle:
    value = os.environ.get(toggle.VARIABLE)
    try:
        return Toggle(value, toggle.parse(value, catalogue.all_patches()))
    except ToggleError as error:
        return Toggle(value, None, str(error))


def verdicts(setting: Toggle) -> list[Entry]:
    """Return the verdict on each patch in each installed namespace; an empty list if the toggle is invalid."""
    if setting.selection is None:
        return []
    return entries(Patcher(catalogue.all_patches()), setting.selection)


def in_words(verdict: str, reason: str) -> str:
    """``"not-affected (lightning 2.6.6 does not have this bug)"``"""
    return verdict + (f" ({reason})" if reason else "")
