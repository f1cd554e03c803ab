"""A run with a callback that sets something at the start of an epoch is resumed within one."""

import json

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

NAME = "epoch-start-on-resume"


def seen(case, shim=False, version="2.6.6"):
    result = run("epoch_start_on_resume", Variant("pytorch-lightning", version, shim), case, toggle=f"default,{NAME}")
    assert result.ok, result
    return result.observations[0]


def events(seen, kind):
    return [event for event in map(json.loads, seen["events"]) if event[0] == kind]


@pytest.mark.parametrize("case", ["SWA from the start: within", "SWA with a scheduler: first batch"])
def test_swa_of_a_resumed_run_equals_that_of_the_uninterrupted_run(case):
    assert seen(case) != seen(f"{case}, whole")
    assert seen(case, shim=True) == seen(f"{case}, whole")


@pytest.mark.parametrize("case", ["plain: within", "GradientAccumulationScheduler: epoch end", "SWA: epoch end"])
def test_run_that_is_right_on_stock_is_unchanged(case):
    assert seen(case, shim=True) == seen(case)


def first_batch_ends_at(step):
    return sees(lambda seen: events(seen, "batch ends")[0][2] == step)


PROOFS = (
    Proof(
        NAME,
        shows_bug=first_batch_ends_at(4),
        right=first_batch_ends_at(3),
        case="GradientAccumulationScheduler: within",
        recommended="GradientAccumulationScheduler: within, whole",
        since="2.5.0",  # below, mid-epoch-resume has the same effect
    ),
)
