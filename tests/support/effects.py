"""What a patch may change in a program that works, besides what the first fixed release changes too.

A maintainer has looked at each of these effects. They stand in ``EFFECTS`` of the patch's ``tests/patches/test_*.py``.
"""

import importlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Mapping

TESTS = Path(__file__).parents[1] / "patches"


@dataclass(frozen=True)
class Effect:
    """One effect.

    Args:
        says: the effect in words.
        lines: patterns, one of which each line that changes has.
        begins: of an effect that has consequences: in the first script that changes, each rank begins to do something
            else with such a line.
        only: "come" or "gone", where only lines that have come, or only lines that are gone, are excused.
        programs: only the programs whose options have one of these values.
        situations: of the programs at extension points (``tests/extension_points``), only these; without
            it, ``programs`` are random ones (``tests/healthy``).
    """

    says: str
    lines: tuple[str, ...] = ("",)
    begins: str = ""
    only: str = ""
    programs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    situations: tuple[str, ...] = ()


@cache
def declared() -> tuple[tuple[str, Effect], ...]:
    """All effects, each with the name of its patch."""
    found = []
    for path in sorted(TESTS.glob("test_*.py")):
        if "EFFECTS = " in path.read_text(encoding="utf-8"):
            module = importlib.import_module(f"tests.patches.{path.stem}")
            name = path.stem.removeprefix("test_").replace("_", "-")
            found += [(name, effect) for effect in module.EFFECTS]
    return tuple(found)
