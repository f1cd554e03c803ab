"""A patch that needs another package checks for the needed attribute when it is applied."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lightning_patches.engine import toggle
from lightning_patches.engine.patcher import Patcher
from lightning_patches.engine.verdicts import entries
from lightning_patches.errors import PatchError
from lightning_patches.patch import Need
from tests.unit.fakes import AFFECTED, World, toy

LIBRARY = "class Store:\n    def wait(self, keys):\n        pass\n\n\n__version__ = '2.2.2'\n"
IMPORTS_IT = "import needed_library\n" + AFFECTED
RELEASES = {"2.3.3": IMPORTS_IT, "2.4.0": IMPORTS_IT.replace("* scale", "* scale + 0")}
MISSING = [
    (Need("needed_library:Store.check"), "needed_library.Store.check"),
    (Need("needed_library:Store.wait", "timeout"), "needed_library.Store.wait(timeout=...)"),
    (Need("needed_library.more:Store"), "needed_library.more.Store"),
]
THERE = [Need("needed_library:Store.wait"), Need("needed_library:Store.wait", "keys")]


@pytest.fixture
def library(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A Lightning that imports the needed package, as it imports torch."""
    Path(world.root, "needed_library.py").write_text(LIBRARY)
    world.install(source=IMPORTS_IT)
    monkeypatch.delitem(sys.modules, "needed_library", raising=False)
    return world


def activate(world: World, need: Need, spec: str = "all") -> Patcher:
    patch = toy(needs=(need,))
    patcher = world.patcher(patch)
    world.know(patch, releases=RELEASES)
    patcher.activate(toggle.parse(spec, (patch,)))
    return patcher


@pytest.mark.parametrize(("need", "words"), MISSING)
def test_missing_need_is_reported_and_nothing_changes(library: World, need: Need, words: str) -> None:
    patcher = activate(library, need)
    (before,) = entries(patcher)
    assert before.verdict == "pending" and f"needs {words}, which is checked then" in before.reason
    assert "needed_library" not in sys.modules, "asking for verdicts imports nothing"
    assert library.load().compute(3) == 6
    (after,) = entries(patcher)
    assert (after.verdict, after.reason) == (
        "not-supported",
        f"needs {words}, which the installed needed_library 2.2.2 does not have",
    )


@pytest.mark.parametrize("need", THERE)
def test_existing_need_is_accepted(library: World, need: Need) -> None:
    patcher = activate(library, need)
    assert library.load().compute(3) == 60
    assert entries(patcher)[0].verdict == "applied"


def test_missing_need_is_an_error_under_strict(library: World) -> None:
    activate(library, MISSING[0][0], "strict")
    with pytest.raises(PatchError, match="toy is not applied: needs needed_library.Store.check"):
        library.load()


def test_missing_need_of_a_deselected_patch_is_ignored_under_strict(library: World) -> None:
    activate(library, MISSING[0][0], "strict,-toy")
    assert library.load().compute(3) == 6
