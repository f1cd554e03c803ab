"""The grammar of ``LIGHTNING_PATCHES``.

A comma-separated list. Items are applied from left to right, so later items take precedence:

=====================================  ==============================================================
``1`` ``on`` ``true`` ``yes``          the default set, as ``default``
``0`` ``off`` ``false`` ``no``         nothing, as ``none``
``all``                                the default set and the opt-in patches
``same-results``                       the default patches that change no results of a program that works without them
a name, an issue or PR number or URL   that patch (``logged-metrics-device``, ``19813``, ``#19813``, ``PR21068``)
a group                                the default patches of ``correctness``, ``crash``, ``hang``,
                                       ``compat`` or ``performance``
``exact-resume`` ``exact-data``        the patches with which programs keep one of the laws in the manual,
``exact-logging`` ``exact-fabric``     including opt-in patches (:data:`~lightning_patches.engine.words.EXACT`)
``exact``                              the patches of all four
``security``                           all patches of that group, including opt-in patches
``-ITEM``, ``no-ITEM``                 without that patch or group
``strict``                             a selected patch that is not applied is an error
``quiet``                              print only errors
=====================================  ==============================================================

A list that begins with an exclusion, or has only ``strict`` and ``quiet``, starts from the default set. A list that
begins with a name, a number or a group starts from the default patches that Lightning needs to be imported at all.
"""

from __future__ import annotations

import re
from typing import Iterable, NamedTuple, Optional

from lightning_patches.engine.words import (
    ALL_WORD,
    DEFAULT_WORDS,
    EXACT,
    FLAG_WORDS,
    NOTHING_WORDS,
    SAME_RESULTS_WORD,
    VARIABLE,
    WORDS,
    split,
)
from lightning_patches.errors import ToggleError
from lightning_patches.notices import cut
from lightning_patches.patch import GROUPS, RENAMED, Patch

__all__ = ["EXACT", "VARIABLE", "Selection", "parse"]


class Selection(NamedTuple):
    """The selected patches and options.

    Args:
        names: names of the selected patches.
        strict: True to raise an error if a selected patch is not applied.
        quiet: True to print only errors.
        spec: the parsed text; ``None`` if nothing was set.
        requested: for each name, number or URL in the text, the names of its patches.
    """

    names: frozenset[str]
    strict: bool = False
    quiet: bool = False
    spec: Optional[str] = None
    requested: tuple[frozenset[str], ...] = ()

    @property
    def shown(self) -> str:
        """``spec``, shortened for a message."""
        return cut(self.spec or "")


def parse(spec: Optional[str], patches: Iterable[Patch]) -> Selection:
    """Parse a toggle.

    Args:
        spec: the text. ``None`` and a blank text select the default set.
        patches: the catalogue to select from.

    Raises:
        ToggleError: an item is unknown. The message suggests similar known items.
    """
    catalogue = tuple(patches)
    default = frozenset(patch.name for patch in catalogue if patch.default)
    items = split(spec or "")
    if not items:
        return Selection(default, spec=None)
    sets: dict[str, frozenset[str]] = {
        **dict.fromkeys(DEFAULT_WORDS, default),
        **dict.fromkeys(NOTHING_WORDS, frozenset()),
        ALL_WORD: frozenset(patch.name for patch in catalogue),
        SAME_RESULTS_WORD: frozenset(patch.name for patch in catalogue if patch.default and not patch.changes_results),
    }
    names: Optional[frozenset[str]] = None
    requested: list[frozenset[str]] = []
    for item in items:
        excluded = _exclusion(item, catalogue)
        if item in sets:
            names = sets[item]
        elif excluded is not None:
            names = (default if names is None else names) - excluded
        elif item not in FLAG_WORDS:
            if names is None:
                names = frozenset(patch.name for patch in catalogue if patch.for_import)
            selected = _selected(item, catalogue, item)
            names |= selected
            if item not in WORDS and item not in GROUPS:
                requested.append(selected)
    names = default if names is None else names
    return Selection(names, "strict" in items, "quiet" in items, spec, tuple(requested))


def _exclusion(item: str, catalogue: tuple[Patch, ...]) -> Optional[frozenset[str]]:
    if any(item == patch.name for patch in catalogue):  # the name of a patch may start with "no-"
        return None
    for prefix in ("-", "no-"):
        if item.startswith(prefix):
            return _selected(item[len(prefix) :], catalogue, item, excluding=True)
    return None


def _selected(key: str, catalogue: tuple[Patch, ...], item: str, excluding: bool = False) -> frozenset[str]:
    if key in EXACT:
        return frozenset(p.name for p in catalogue if p.name in EXACT[key])
    if key in GROUPS:
        return frozenset(p.name for p in catalogue if p.group == key and (p.default or excluding or key == "security"))
    number = re.sub(r"^https?://github\.com/[^/]+/[^/]+/(issues|pull)/(\d+)([/?#].*)?$|^(pr)?#?", r"\2", key)
    name = key.replace("_", "-")
    name = RENAMED.get(name, name)
    found = frozenset(p.name for p in catalogue if name == p.name or number in map(str, p.numbers))
    if found:
        return found
    raise ToggleError(_unknown(key, catalogue, item))


def _unknown(key: str, catalogue: tuple[Patch, ...], item: str) -> str:
    import difflib

    key, item = cut(key), cut(item)
    numbers = {str(number) for patch in catalogue for number in patch.numbers}
    words = [*(p.name for p in catalogue), *GROUPS, *WORDS, *numbers]
    close = difflib.get_close_matches(key, words, n=3, cutoff=0.6) or sorted(
        word for word in words if len(key) > 2 and key in word
    )
    hint = f"Did you mean {' or '.join(repr(word) for word in close)}? " if close else ""
    return (
        f"{VARIABLE}: there is no patch, group or issue called {item!r}. {hint}"
        "`lightning-patches list` shows all patches."
    )
