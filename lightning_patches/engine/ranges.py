"""Ranges of releases, such as ``>=2.0.0,<2.4.0``."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, Callable

from packaging.version import Version

_COMPARISONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "<": operator.lt}


@lru_cache(maxsize=None)
def in_ranges(version: str, ranges: tuple[str, ...]) -> bool:
    """True if a version is in one of the ranges.

    Local labels (``2.2.5+cu118``) are ignored. Development versions and release candidates count as their release.
    """
    public = public_version(version)
    return any(all(compare(public, bound) for compare, bound in _bounds(text)) for text in ranges)


# Cached, since parsing dominates the cost of a decision, and all patches use the same few dozen texts.
@lru_cache(maxsize=None)
def version_of(text: str) -> Version:
    return Version(text)


@lru_cache(maxsize=None)
def public_version(version: str) -> Version:
    parsed = version_of(version)
    return Version(parsed.base_version if parsed.is_prerelease else parsed.public)


@lru_cache(maxsize=None)
def _bounds(text: str) -> tuple[tuple[Callable[[Any, Any], bool], Version], ...]:
    """Return the comparisons of a specifier.

    ``packaging`` would take three times as long. :func:`public_version` handles release candidates and local labels.
    """
    found = []
    for clause in filter(None, map(str.strip, text.split(","))):
        sign = clause[:2].rstrip("0123456789")
        if sign not in _COMPARISONS:
            raise ValueError(f"a range of releases may have only >=, <=, == and <, not {text!r}")
        found.append((_COMPARISONS[sign], version_of(clause[len(sign) :])))
    return tuple(found)
