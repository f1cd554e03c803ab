"""The boundaries of ``PROOFS``, and tests of the checks. The boundaries of ``bug`` rows are tests of their files."""

from dataclasses import replace

import pytest

from lightning_patches import patches as catalogue
from lightning_patches.engine import fingerprints
from tests.equivalence import boundaries
from tests.equivalence.boundaries import Boundary
from tests.support import old_torch
from tests.support.variants import Result


def marked(one, name):
    # One worker runs all tests of a patch, so that the fixed release runs only once.
    marks = [pytest.mark.xdist_group(one.proof.patch), pytest.mark.timeout(900)]
    if one.proof.old_torch and old_torch.find().python is None:
        marks.append(pytest.mark.skip(reason=old_torch.find().reason))
    return pytest.param(one, id=name, marks=marks)


def of_tests():
    return [proof for proof in boundaries.proofs() if not proof.program]


@pytest.mark.equivalence
@pytest.mark.distributed
@pytest.mark.parametrize(
    "boundary", [marked(one, str(one)) for proof in of_tests() for one in boundaries.boundaries(proof)]
)
def test_variants_agree(boundary):
    assert boundaries.problems(boundary) == []


def by_default():
    """Return each case of a default patch, on the newest release that it affects."""
    for proof in of_tests():
        newest = boundaries.newest_affected(proof)
        if catalogue.find(proof.patch)[0].default and newest is not None and not proof.old_torch:
            yield marked(newest, str(proof))


@pytest.mark.equivalence
@pytest.mark.distributed
@pytest.mark.parametrize("boundary", list(by_default()))
def test_default_set_fixes_the_bug(boundary):
    """Unlike in the test above, the shim has all default patches."""
    assert boundaries.problems_by_default(boundary) == []


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
def test_proof_fails_unless_stock_shows_the_bug_and_patched_runs_are_right(stock, patched, right, wrong):
    (proof,) = boundaries.of("fit-resets-should-stop")
    boundary = Boundary(replace(proof, right=lambda result: right), "lightning", "2.5.0.post0", "affected")

    def run(proof, variant, *_):
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
    (proof,) = boundaries.of("fit-resets-should-stop")
    problems = boundaries.problems(
        Boundary(proof, "lightning", "2.6.6", "newest"), lambda proof, variant, *_: shim if variant.shim else stock
    )
    assert len(problems) == len(wrong) and all(map(str.startswith, problems, wrong)), problems


def test_every_patch_has_a_proof():
    assert boundaries.unproven() == []


def test_both_distributions_have_the_same_source_for_all_targets():
    """Otherwise each boundary would have to run on both distributions."""
    for location, row in fingerprints._data()["functions"].items():
        digests = [one.split()[0] for one in row.split(", ")]
        releases = [number for digest in digests for number in fingerprints.numbers(row, digest)]
        assert len(releases) == len(set(releases)), location


def test_boundaries_surround_the_affected_range():
    proof = boundaries.of("logged-metrics-device")[0]
    assert [(one.distribution, one.version, one.role) for one in boundaries.boundaries(proof)] == [
        ("pytorch-lightning", "2.0.9.post0", "before"),
        ("pytorch-lightning", "2.1.0", "affected"),
        ("lightning", "2.3.3", "affected"),
        ("lightning", "2.4.0", "fixed"),
        ("lightning", "2.6.6", "newest"),
    ]


def test_shim_and_fork_have_the_fixes_of_the_official_release():
    patch = catalogue.find("logged-metrics-device")[0]
    names = boundaries.companions(patch, "2.3.3")
    assert patch.name in names
    assert "dataloader-error-unmasked" not in names, "no official release has it"
    never_fixed = catalogue.find("dataloader-error-unmasked")[0]
    assert boundaries.companions(never_fixed, "2.3.3") == [never_fixed.name]
    sharing = catalogue.find("fabric-submodule-sync")[0]
    assert {sharing.name, "fabric-compiled-module"} <= set(boundaries.companions(sharing, "2.2.5")), (
        "both change __init__"
    )
