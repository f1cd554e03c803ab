"""A run with reload_dataloaders_every_n_epochs is resumed."""

import json

import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run

NAME = "reload-on-resume"


def seen(case, shim=False, version="2.6.6"):
    result = run("reload_on_resume", Variant("pytorch-lightning", version, shim), case, toggle=f"default,{NAME}")
    assert result.ok, result
    return result.observations[0]


def events(seen, kind):
    return [event for event in map(json.loads, seen["events"]) if event[0] == kind]


@pytest.mark.parametrize("case", ["reload every two epochs: epoch end", "reload every three epochs: finished"])
def test_resumed_run_makes_its_loaders_in_the_epochs_of_the_uninterrupted_run(case):
    assert seen(case) != seen(f"{case}, whole")
    assert seen(case, shim=True) == seen(f"{case}, whole")


@pytest.mark.parametrize("case", ["plain: epoch end", "reload every epoch: epoch end"])
def test_run_that_is_right_on_stock_is_unchanged(case):
    assert seen(case, shim=True) == seen(case)


def makes_loaders_in(*epochs):
    return sees(lambda seen: events(seen, "loaders") == [["loaders", *epochs]])


PROOFS = proofs(
    NAME,
    makes_loaders_in(),
    "reload every three epochs: epoch end",
    recommended="reload every three epochs: epoch end, whole",
    right=makes_loaders_in(3),
)
