"""A run is resumed from a checkpoint that was saved at the end of a batch within an epoch."""

import json

import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run

NAME = "mid-epoch-resume"


def seen(case, shim=False, version="2.4.0"):
    result = run("mid_epoch_resume", Variant("pytorch-lightning", version, shim), case, toggle=NAME)
    assert result.ok, result
    return result.observations[0]


def events(seen, kind):
    return [event for event in map(json.loads, seen["events"]) if event[0] == kind]


@pytest.mark.parametrize("version", ["2.0.0", "2.4.0"])
@pytest.mark.parametrize(
    "case", ["plain: last batch", "validated every two batches: within", "StepLR by step, accumulation: within"]
)
def test_resumed_run_equals_the_uninterrupted_run(case, version):
    assert seen(case, version=version) != seen(f"{case}, whole", version=version)
    assert seen(case, shim=True, version=version) == seen(f"{case}, whole", version=version)


@pytest.mark.parametrize("case", ["plain: epoch end", "stateful: epoch end"])
def test_run_resumed_at_the_end_of_an_epoch_is_unchanged(case):
    assert seen(case, shim=True) == seen(case)


def test_uninterrupted_run_is_unchanged():
    assert seen("plain: within, whole", shim=True) == seen("plain: within, whole")


def begins_with_batch(number):
    return sees(lambda seen: events(seen, "batch starts")[0][3] == number)


PROOFS = proofs(NAME, begins_with_batch(1), "plain: within", right=begins_with_batch(2))
