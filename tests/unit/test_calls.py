"""What a replacement calls of Lightning has to take the arguments that it takes in the affected releases."""

from __future__ import annotations

import pytest

from lightning_patches.engine import fingerprints
from lightning_patches.engine.verdicts import Entry, entries
from lightning_patches.errors import PatchError
from tests.unit.fakes import AFFECTED, World, toy

CALLS = ("pytorch.subject:other()", "pytorch.subject:Base.static()", "pytorch.subject:Child()")
BODY = AFFECTED.replace('return "other"', 'return "other" + ""')
"""A vendor's build of an affected release, with the bug: no release ships this file, and everything is called alike."""
CHANGED = [
    (
        BODY.replace("def other()", "def other(name)"),
        "pytorch.subject:other(), which it calls, takes other arguments in",
    ),
    (BODY.replace("def other", "def renamed"), "pytorch.subject:other(), which it calls, is missing"),
    (BODY.replace("static(x: int)", "static(x, *, y)"), "pytorch.subject:Base.static(), which it calls, takes other"),
    (BODY.replace("    @staticmethod\n", ""), "pytorch.subject:Base.static(), which it calls, takes other"),
    (BODY.replace("class Child(Base):\n    pass\n", ""), "pytorch.subject:Child(), which it calls, is missing"),
]


def activate(world: World, source: str, spec: str = "all") -> Entry:
    world.install(source=source)
    patch = toy(calls=CALLS)
    patcher = world.activate(patch, spec=spec)
    module = world.load()
    (entry,) = entries(patcher)
    assert module.compute(3) == (60 if entry.verdict == "applied" else 6)
    return entry


@pytest.mark.parametrize("source", [AFFECTED, BODY])
def test_what_takes_the_same_arguments(world: World, source: str) -> None:
    assert activate(world, source).verdict == "applied"


@pytest.mark.parametrize(("source", "words"), CHANGED)
def test_what_takes_others(world: World, source: str, words: str) -> None:
    entry = activate(world, source)
    assert entry.verdict == "drifted" and entry.reason.startswith(words), entry


def test_strict_insists(world: World) -> None:
    with pytest.raises(PatchError, match=r"toy is not applied: pytorch.subject:other\(\), which it calls, is missing"):
        activate(world, CHANGED[1][0], "strict")


@pytest.mark.parametrize(
    ("definition", "signature"),
    [
        ("def f(): ...", "()"),
        ("async def f(a, b: int = 2, *more: int, c, d=1, **rest: int) -> int: ...", "(a, b=, *more, c, d=, **rest)"),
        ("def f(a, *, b): ...", "(a, *, b)"),
        ("@functools.wraps(1)\n@typing.staticmethod\ndef f(a): ...", "@staticmethod (a)"),
        ("if True:\n    def f(a): ...", "(a)"),
        ("class f: ...", "class"),
        ("f = 1", None),
        ("def f(", None),
    ],
)
def test_signatures(definition: str, signature: str) -> None:
    assert fingerprints.function_digest(definition, "f()") == signature


def test_a_method_of_a_class() -> None:
    assert (
        fingerprints.signatures("class A:\n class B:\n  @property\n  def f(self): ...")["A.B.f"] == "@property (self)"
    )


def test_positional_only() -> None:
    assert fingerprints.function_digest("def f(a, /, b=1): ...", "f()") == "(a, /, b=)"
