"""The tests that ``scripts/test`` selects."""

from collections import Counter

import pytest

from lightning_patches import patches as catalogue
from tests import selection
from tests.equivalence import boundaries
from tests.support.variants import ROOT

pytest_plugins = ["pytester"]


class Item:
    def __init__(self, path, name, **parameters):
        self.path, self.originalname = ROOT / "tests" / path, name
        self.is_slow, self.boundary = parameters.pop("slow", False), parameters.pop("boundary", None)
        if parameters:
            self.callspec = type("Callspec", (), {"params": parameters})

    def get_closest_marker(self, name):
        return self.is_slow or None


def items_of(*patches):
    return [
        Item("patches/a.py", "bug", boundary=one)
        for patch in patches
        for row in boundaries.of(patch)
        for one in boundaries.boundaries(row)
    ]


def chosen(items, monkeypatch, *changed):
    monkeypatch.setattr(selection, "changed_paths", lambda: list(changed))
    return [item for item, is_soon in zip(items, selection.soon(items)) if is_soon]


def test_selection_has_every_patch_on_its_newest_affected_release(monkeypatch):
    items = items_of(*(patch.name for patch in catalogue.all_patches()))
    boundaries_of = [item.boundary for item in chosen(items, monkeypatch)]
    last_of_1x = [one for one in boundaries_of if one.version == selection.LAST_OF_1X]
    assert len({item.boundary for item in items}) > 8 * len(last_of_1x) > 80
    by_patch = Counter(one.row.patch for one in boundaries_of if one not in last_of_1x)
    assert set(by_patch.values()) == {1}
    assert set(by_patch) == {row.patch for row in boundaries.bugs()}
    versions = [item.boundary.version for item in chosen(items_of("logged-metrics-device"), monkeypatch)]
    assert versions == ["2.3.3"]


def test_selection_has_all_tests_of_a_changed_patch(monkeypatch):
    items = [
        *items_of("fit-resets-should-stop", "logged-metrics-device"),
        Item("patches/loops/test_fit_resets_should_stop_more.py", "a"),
    ]
    of_patch = chosen(items, monkeypatch, "upstream/diffs/fit-resets-should-stop.patch")
    assert len(of_patch) == len(items_of("fit-resets-should-stop")) + 1 + 1


@pytest.mark.parametrize(
    ("path", "patches"),
    [
        ("lightning_patches/patches/loops/fit_resets_should_stop.py", {"fit-resets-should-stop"}),
        ("tests/patches/devices/test_align_devices_spawn.py", {"align-devices"}),
        ("tests/patches/checkpoints/own_checkpoint_load.py", {"own-checkpoint-load"}),
        ("upstream/diffs/compiled-log.2.1.0.patch", {"compiled-log"}),
        ("lightning_patches/engine/gate.py", set()),
    ],
)
def test_patch_is_derived_from_a_path(path, patches):
    assert selection.changed_patches([path]) == patches


def test_every_test_is_selected_by_soon_or_rest(pytester: pytest.Pytester) -> None:
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text().replace("Path(__file__)", f'Path("{ROOT}/x/y")'))
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_some(n): pass")
    options = ("-p", "no:cacheprovider")
    assert pytester.runpytest_subprocess(*options, "--soon").parseoutcomes() == {"deselected": 4}
    assert pytester.runpytest_subprocess(*options, "--rest", "3").parseoutcomes() == {"passed": 4}
    assert pytester.runpytest_subprocess(*options, "--until", "1").parseoutcomes() == {"skipped": 4}
