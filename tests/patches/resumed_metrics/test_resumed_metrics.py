import json

import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.programs import Program

NAME = "resumed-metrics"
PROGRAM = Program(NAME, "2.6.6", "pytorch-lightning")


def seen(case, shim=False, version="2.6.6", toggle=NAME):
    result = PROGRAM.run(case, version, shim=shim, toggle=toggle)
    assert result.ok, result
    return result.observations[0]["events"]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
@pytest.mark.parametrize("case", ["plateau by epoch: epoch end", "EarlyStopping: epoch end", "plain: epoch end"])
def test_uninterrupted_run_is_unchanged(case, version):
    assert seen(f"{case}, whole", shim=True, version=version) == seen(f"{case}, whole", version=version)


@pytest.mark.parametrize("case", ["StepLR by epoch: epoch end", "EarlyStopping after validation: epoch end"])
@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_resumed_run_that_is_right_on_stock_is_unchanged(case, version):
    assert seen(case, shim=True, version=version) == seen(case, version=version)


@pytest.mark.parametrize(
    "case",
    [
        "plateau by epoch: within",
        "plateau by epoch: validation",
        "plateau by step: validation",
        "plateau by two steps on a validation metric: validation",
        "EarlyStopping, stream: validation",
        "ModelCheckpoint, best: validation",
    ],
)
def test_resumed_run_equals_the_uninterrupted_run(case):
    assert seen(case) != seen(f"{case}, whole")
    assert seen(case, shim=True) == seen(f"{case}, whole")


def rate_is(rate):
    """True if this is the learning rate of the first batch after the resume."""

    def check(seen):
        events = map(json.loads, seen["events"])
        return next(event[4] for event in events if event[0] == "batch ends") == [[rate]]

    return sees(check)


PROOFS = proofs(
    NAME,
    rate_is(0.1),
    "plateau by epoch: epoch end",
    "plateau, stream: epoch end",
    recommended="{}, whole",
    right=rate_is(0.05),
)
