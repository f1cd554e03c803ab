import pytest

from lightning_patches.patches import find
from tests.support.variants import Variant, run


def observed(variant, case):
    result = run("warn_mid_epoch_resume", variant, case)
    assert result.ok, result
    seen = result.observations[0]
    return seen, seen.pop("warnings", [])


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [
        ("pytorch-lightning", "2.0.0", "last_batch"),
        ("pytorch-lightning", "2.4.0", "batch"),
        ("lightning", "2.4.0", "batch"),
    ],
)
def test_warns_where_one_step_is_taken_twice(distribution, version, case):
    whole, _ = observed(Variant(distribution, version), "whole")
    assert whole["steps"] == 8
    stock, _ = observed(Variant(distribution, version), case)
    assert stock["steps"] == 9
    assert stock["weight"] != whole["weight"]

    shim, warnings = observed(Variant(distribution, version, shim=True), case)
    assert shim == stock
    (warning,) = warnings
    batch = 2 if case == "batch" else 4
    assert f"end of batch {batch} of an epoch" in warning
    assert find("warn-mid-epoch-resume")[0].impact.summary in warning
    assert "move to Lightning 2.5.1 or later" in warning


@pytest.mark.parametrize(
    ("version", "case"),
    [("2.0.0", "epoch"), ("2.4.0", "epoch"), ("2.4.0", "validation"), ("2.5.0", "batch"), ("2.5.1", "batch")],
)
def test_is_silent_where_no_step_is_taken_twice(version, case):
    stock, _ = observed(Variant("pytorch-lightning", version), case)
    assert stock["steps"] == 8
    assert observed(Variant("pytorch-lightning", version, shim=True), case) == (stock, [])
