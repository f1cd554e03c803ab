"""A run with a stateful data loader is resumed."""

import json

import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run

NAME = "stateful-loader-exact"


def seen(case, shim=False, version="2.6.6"):
    result = run("stateful_loader_exact", Variant("pytorch-lightning", version, shim), case, toggle=f"default,{NAME}")
    assert result.ok, result
    return result.observations[0]


def events(seen, kind):
    return [event for event in map(json.loads, seen["events"]) if event[0] == kind]


@pytest.mark.parametrize(
    "name", ["stateful", "stateful, lazy", "stateful stream", "stateful stream, limit_train_batches"]
)
def test_loader_continues_after_the_end_of_an_epoch(name):
    case = f"{name}: epoch end"
    assert seen(case) != seen(f"{case}, whole")
    assert seen(case, shim=True) == seen(f"{case}, whole")


@pytest.mark.parametrize("case", ["stream: epoch end", "stateful: within", "plain: epoch end"])
def test_run_that_is_right_on_stock_is_unchanged(case):
    assert seen(case, shim=True) == seen(case)


def trains_first_on(number):
    return sees(lambda seen: events(seen, "batch")[0][1][0] % 10 == number)


PROOFS = proofs(
    NAME,
    trains_first_on(4),
    "stateful stream: within",
    recommended="stateful stream: within, whole",
    right=trains_first_on(3),
)
