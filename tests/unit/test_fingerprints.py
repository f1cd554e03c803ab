"""Fingerprints of functions: when two sources count as the same code, and the releases that the table has for it."""

from __future__ import annotations

from textwrap import dedent

import pytest

from lightning_patches.engine import fingerprints
from lightning_patches.engine.fingerprints import function_digest, function_source
from tests.unit.fakes import AFFECTED, FIXED, FUNCTION, METHOD, World, toy

SOURCE = dedent(
    '''
    from typing import overload

    @overload
    def f(x: int) -> int: ...
    @overload
    def f(x: str) -> str: ...
    def f(x):
        return x


    if True:
        def inside(x):
            return 1
    else:
        def otherwise(x):
            return 2

    try:
        import nowhere
    except ImportError:
        pass
    else:
        def tried():
            return 3


    class Outer:
        attribute = 1

        @property
        @decorated(
            1
        )
        def method(self):
            """Text."""
            return 4

        class Inner:
            async def deep(self):
                return 5
    '''
)


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("f", "def f(x):\n    return x"),  # the last definition counts
        ("inside", "    def inside(x):\n        return 1"),
        ("otherwise", "    def otherwise(x):\n        return 2"),
        ("tried", "    def tried():\n        return 3"),
        ("Outer.Inner.deep", "        async def deep(self):\n            return 5"),
    ],
)
def test_source_of_a_function_is_found(attribute: str, expected: str) -> None:
    assert function_source(SOURCE, attribute) == expected


def test_source_includes_decorators() -> None:
    source = function_source(SOURCE, "Outer.method")
    assert source is not None
    assert source.splitlines()[0].strip() == "@property"
    assert source.splitlines()[-1].strip() == "return 4"


@pytest.mark.parametrize("attribute", ["g", "Outer.nothing", "Nowhere.method", "Outer.attribute", "x"])
def test_missing_function_has_no_source(attribute: str) -> None:
    assert function_source(SOURCE, attribute) is None
    assert function_digest(SOURCE, attribute) is None


def test_file_that_is_not_python_is_unknown() -> None:
    assert function_source("def broken(:\n", "broken") is None


def test_changes_outside_the_function_are_ignored() -> None:
    digest = function_digest(AFFECTED, "compute")
    assert digest == function_digest("# a licence\nimport os\n" + AFFECTED + "\n\nX = 1\n", "compute")
    assert digest == function_digest(AFFECTED.replace("\n", "\r\n"), "compute")
    assert digest == function_digest(AFFECTED.replace("scale\n", "scale   \n"), "compute")
    assert digest != function_digest(FIXED, "compute")
    assert digest != function_digest(AFFECTED.replace("scale: int = 2", "scale: int = 3"), "compute")


def test_both_namespaces_have_the_same_code() -> None:
    unified = "def f():\n    from lightning.pytorch.x import y\n    import lightning.fabric as z\n"
    mirror = "def f():\n    from pytorch_lightning.x import y\n    import lightning_fabric as z\n"
    assert function_digest(unified, "f") == function_digest(mirror, "f")


def test_released_file_is_recognized_by_its_hash(world: World) -> None:
    part = world.install("2.3.3").parts["pytorch"]
    world.know(toy(FUNCTION, METHOD))
    source = fingerprints.source_of(part, FUNCTION)
    assert source.releases == {"2.2.0", "2.2.5", "2.3.3"}
    assert source.exists
    assert not source.diffs


def test_code_that_no_release_ships_is_unknown(world: World) -> None:
    part = world.install("2.3.3", source=AFFECTED.replace("* scale", "* scale * 1")).parts["pytorch"]
    world.know(toy(FUNCTION, METHOD))
    assert fingerprints.source_of(part, FUNCTION) == fingerprints.Source(frozenset(), True, frozenset())
    assert fingerprints.source_of(part, METHOD).releases == {"2.2.0", "2.2.5", "2.3.3"}


def test_absent_function_is_recognized(world: World) -> None:
    added, gone = "pytorch.subject:Base.added", "pytorch.nowhere:f"
    part = world.install("2.3.3").parts["pytorch"]
    world.know(toy(FUNCTION, added, gone))
    assert fingerprints.source_of(part, added).releases == {"2.2.0", "2.2.5", "2.3.3"}
    source = fingerprints.source_of(part, gone)  # no release has this file
    assert not source.exists
    assert source.releases == {"2.2.0", "2.2.5", "2.3.3", "2.4.0", "2.5.0"}


def test_applied_diffs_are_recognized(world: World) -> None:
    source = AFFECTED.replace("    return value", "    # lightning-patches: toy\n    return 1 * value")
    part = world.install("2.3.3", source=source).parts["pytorch"]
    world.know(toy())
    assert fingerprints.source_of(part, FUNCTION).diffs == {"toy"}


def test_undecodable_file_is_unknown(world: World) -> None:
    part = world.install("2.3.3").parts["pytorch"]
    (world.root / "lightning" / "pytorch" / "subject.py").write_bytes(b"\xff\xfe\x00")
    world.know(toy())
    assert fingerprints.source_of(part, FUNCTION) == fingerprints.Source(frozenset(), False, frozenset())
