"""Which tests ``scripts/test`` runs first."""

from collections import Counter

import pytest

from lightning_patches import patches as catalogue
from tests import selection
from tests.equivalence import matrix
from tests.support.arms import ROOT

pytest_plugins = ["pytester"]


class Item:
    def __init__(self, path, name, **parameters):
        self.path, self.originalname = ROOT / "tests" / path, name
        if parameters:
            self.callspec = type("Callspec", (), {"params": parameters})


def test_one_case_of_each_test_and_one_release_of_each_patch():
    cells = matrix.cells(["fit-resets-should-stop", "logged-metrics-device"], boundaries_only=True)
    items = [
        *(Item("equivalence/test_equivalence.py", "test_the_arms_agree", cell=cell) for cell in cells),
        Item("equivalence/test_equivalence.py", "test_the_default_set_cures_it_too", cell=cells[0]),
        *(Item("patches/test_a.py", "test_more", number=number) for number in range(3)),
        Item("patches/test_a.py", "test_other"),
        *(Item("conformance/test_conformance.py", "test_patch", patch=patch) for patch in "aab"),
        *(Item("activation/test_run.py", "test_way", world=way, number=number) for way in "ab" for number in range(2)),
        *(Item("unit/test_gate.py", "test_gate", number=number) for number in range(2)),
        Item("simulated_cuda/test_rehearsal.py", "test_the_matrix"),
    ]
    chosen = [item for item, is_soon in zip(items, selection.soon(items)) if is_soon]
    counts = Counter((item.path.parent.name, item.originalname) for item in chosen)
    assert counts == {
        ("equivalence", "test_the_arms_agree"): 2,
        ("patches", "test_more"): 1,
        ("patches", "test_other"): 1,
        ("conformance", "test_patch"): 2,
        ("activation", "test_way"): 2,
        ("unit", "test_gate"): 2,
    }
    versions = {item.callspec.params["cell"].version for item in chosen[:2]}
    assert versions == {"2.5.0.post0", "2.3.3"}, "the newest that they affect"


def test_every_patch_that_has_a_cell_is_told_of_soon():
    cells = matrix.cells(boundaries_only=True)
    items = [Item("equivalence/test_equivalence.py", "test_the_arms_agree", cell=cell) for cell in cells]
    told = {item.callspec.params["cell"].proof.patch for item, is_soon in zip(items, selection.soon(items)) if is_soon}
    assert told == {cell.proof.patch for cell in cells}
    assert len(told) > len(catalogue.all_patches()) - 10


def test_all_get_their_turn():
    items = list(range(50))
    starts = [selection.rotated(items, turn)[:8] for turn in range(7)]
    assert sorted({number for start in starts for number in start}) == items
    assert all(sorted(selection.rotated(items, turn)) == items for turn in range(7))


def test_soon_and_rest_are_everything_and_no_test_begins_late(pytester: pytest.Pytester) -> None:
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text().replace("Path(__file__)", f'Path("{ROOT}/x/y")'))
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_some(n): pass")
    options = ("-p", "no:cacheprovider")
    assert pytester.runpytest_subprocess(*options, "--soon").parseoutcomes() == {"passed": 4}
    assert pytester.runpytest_subprocess(*options, "--rest", "3").parseoutcomes() == {"deselected": 4}
    assert pytester.runpytest_subprocess(*options, "--until", "1").parseoutcomes() == {"skipped": 4}
