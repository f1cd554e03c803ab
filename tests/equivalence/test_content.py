"""Texts may change without voiding a proof; code may not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.equivalence.content import content, relied_on

MODULE = '''
"""About it."""
import os

LIMIT = 3
"""How much."""


def replacement():
    """Does it."""
    return os.sep * LIMIT  # so far


PATCHES = (Patch(name="a", title="Does it", targets=(replacement,)),)
'''
TEST = """
from tests.equivalence.proof import Proof, sees
from elsewhere import CASES

WANTED = 1
FURTHER = 2

def _wrong(seen):
    return seen["x"] != WANTED

PROOFS = tuple(Proof("a", sees(_wrong), case) for case in CASES)

def test_more():
    assert FURTHER == 2
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / f"m{len(list(tmp_path.iterdir()))}.py"  # read once, a file is remembered
        path.write_text(text)
        return path

    return write


ANSWERED = ('"Does it",', '"Does it", relied_on="Nobody.", relied_on_tests=("test.py::test",),')


@pytest.mark.parametrize(
    "old, new", [("About", "Of"), ("much", "many"), ("  # so far", ""), ("Does it", "Mends it"), ANSWERED]
)
def test_a_text(written: Callable[[str], Path], old: str, new: str) -> None:
    assert content(written(MODULE.replace(old, new))) == content(written(MODULE))


@pytest.mark.parametrize("old, new", [("3", "4"), ("os.sep", "os.linesep"), ('"a"', '"b"'), ("(replacement,)", "()")])
def test_code(written: Callable[[str], Path], old: str, new: str) -> None:
    assert content(written(MODULE.replace(old, new))) != content(written(MODULE))


def test_other_files(tmp_path: Path) -> None:
    for name, text in (("one.txt", "# a"), ("two.txt", "# b")):
        (tmp_path / name).write_text(text)
    assert content(tmp_path / "one.txt") != content(tmp_path / "two.txt")


@pytest.mark.parametrize("old, new", [("FURTHER = 2", "FURTHER = 3"), ("test_more", "test_less")])
def test_what_a_name_does_not_rely_on(written: Callable[[str], Path], old: str, new: str) -> None:
    assert relied_on(written(TEST.replace(old, new)), "PROOFS") == relied_on(written(TEST), "PROOFS")


@pytest.mark.parametrize("old, new", [("WANTED = 1", "WANTED = 5"), ("!=", "=="), ("case) for", "case, '') for")])
def test_what_a_name_relies_on(written: Callable[[str], Path], old: str, new: str) -> None:
    assert relied_on(written(TEST.replace(old, new)), "PROOFS") != relied_on(written(TEST), "PROOFS")
