"""A run is resumed from a checkpoint of a batch that a validation follows."""

import json

import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run

NAME = "validation-due-on-resume"


def seen(case, shim=False, version="2.6.6"):
    result = run(
        "validation_due_on_resume", Variant("pytorch-lightning", version, shim), case, toggle=f"default,{NAME}"
    )
    assert result.ok, result
    return result.observations[0]


def events(seen, kind):
    return [event for event in map(json.loads, seen["events"]) if event[0] == kind]


@pytest.mark.parametrize("case", ["max_steps, across epochs: within", "stateful, validated every two batches: within"])
def test_resumed_run_equals_the_uninterrupted_run(case):
    assert seen(case) != seen(f"{case}, whole")
    assert seen(case, shim=True) == seen(f"{case}, whole")


@pytest.mark.parametrize("case", ["plain: within", "validated every two batches: validation"])
def test_run_without_a_validation_that_is_due_is_unchanged(case):
    assert seen(case, shim=True) == seen(case)


def begins_with(kind):
    return sees(lambda seen: json.loads(seen["events"][0])[0] == kind)


PROOFS = proofs(
    NAME,
    sees(lambda seen: json.loads(seen["events"][0]) == ["batch starts", 1, 6, 2]),
    "validated every two batches: within",
    recommended="validated every two batches: within, whole",
    right=begins_with("validation starts"),
)
