"""How the boundaries of ``bug`` rows are found and checked."""

from dataclasses import replace

import pytest

from lightning_patches.engine import fingerprints
from tests.equivalence import boundaries
from tests.equivalence.boundaries import Boundary
from tests.support.variants import Result

from _expect import whole_run  # isort: skip


@pytest.mark.parametrize(
    ("stock", "patched", "right", "wrong"),
    [
        ([2, 2], [2, 10], True, []),
        ([2, 10], [2, 10], True, ["stock does not show the bug"]),
        ([2, 2], [2, 9], True, ["shim differs", "fork differs"]),
        ([2, 2], [2, 2], True, ["shim shows the bug", "shim with strict", "fork shows the bug"]),
        ([2, 2], [2, 10], False, ["shim is not right", "fork is not right"]),
    ],
)
def test_bug_fails_unless_stock_shows_the_bug_and_patched_runs_are_right(stock, patched, right, wrong):
    (row,) = boundaries.of("fit-resets-should-stop")
    boundary = Boundary(replace(row, patched=whole_run(lambda result: right)), "lightning", "2.5.0.post0", "affected")

    def run(row, variant, *_):
        steps = [2, 10] if variant.version == "2.5.1" else patched if variant.shim or variant.directory else stock
        return Result(0, "", [{"steps": steps}])

    problems = boundaries.problems(boundary, run)
    assert len(problems) == len(wrong) and all(map(str.startswith, problems, wrong)), problems


@pytest.mark.parametrize(
    ("stock", "shim", "wrong"),
    [
        (Result(0, "", [{"steps": 1}]), Result(0, "", [{"steps": 1}]), []),
        (Result(1, "", []), Result(1, "", []), ["stock is not right"]),
        (Result(0, "", [{"steps": 1}]), Result(0, "", [{"steps": 2}]), ["shim differs from stock"]),
        (Result(0, "", []), Result(0, "lightning_patches: lightning 2.6.6: 1 fix", []), ["the shim applied something"]),
    ],
)
def test_unaffected_release_is_unchanged(stock, shim, wrong):
    (row,) = boundaries.of("fit-resets-should-stop")
    problems = boundaries.problems(
        Boundary(row, "lightning", "2.6.6", "newest"), lambda row, variant, *_: shim if variant.shim else stock
    )
    assert len(problems) == len(wrong) and all(map(str.startswith, problems, wrong)), problems


def test_every_patch_has_a_bug_row():
    assert boundaries.unproven() == []


def test_both_distributions_have_the_same_source_for_all_targets():
    """Otherwise each boundary would have to run on both distributions."""
    for location, row in fingerprints._data()["functions"].items():
        digests = [one.split()[0] for one in row.split(", ")]
        releases = [number for digest in digests for number in fingerprints.numbers(row, digest)]
        assert len(releases) == len(set(releases)), location
