"""Decide by a table of rules instead of by nested conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import AbstractSet, Optional, Tuple, TypeVar

Result = TypeVar("Result")
Rule = Tuple[AbstractSet[str], AbstractSet[str], Result]
"""The signs that must be present, the signs that must be absent, and the result."""


def first(rules: Sequence[Rule[Result]], signs: AbstractSet[str]) -> Optional[Result]:
    """Return the result of the first rule that fits the signs, or ``None``."""
    return next((result for has, lacks, result in rules if has <= signs and not lacks & signs), None)
