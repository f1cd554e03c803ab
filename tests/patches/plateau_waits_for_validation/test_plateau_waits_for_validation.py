"""PR 21266: ReduceLROnPlateau follows a metric of the validation, which does not run in every epoch."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

ERROR = "MisconfigurationException: ReduceLROnPlateau conditioned on metric {} which is not available"
RELEASES = ["2.0.0", "2.6.6"]


def seen(version, case, shim=False):
    result = run("plateau_waits_for_validation", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", RELEASES)
def test_scheduler_steps_after_each_validation(version):
    stock = seen(version, "waits")
    assert stock["error"].startswith(ERROR.format("val")) and stock["steps"] == []
    shim = seen(version, "waits", shim=True)
    assert [epoch for epoch, *_ in shim["steps"]] == [1, 3, 5]
    assert shim == seen(version, "by hand")


def test_resumed_training_also_waits():
    shim = seen("2.6.6", "resumed", shim=True)
    assert (shim["error"], [epoch for epoch, *_ in shim["steps"]]) == (None, [3, 5])


def test_scheduler_of_a_training_metric_steps_in_every_epoch():
    called = [(epoch, mode) for epoch, mode, _ in seen("2.6.6", "two", shim=True)["steps"]]
    assert called == [(epoch, mode) for epoch in range(6) for mode in (("min",) if epoch % 2 else ()) + ("max",)]


@pytest.mark.parametrize("case", ["trained", "lenient", "stale", "by hand", "asked"])
@pytest.mark.parametrize("version", RELEASES)
def test_scheduler_with_its_metric_is_unchanged(version, case):
    stock = seen(version, case)
    assert (stock["error"], stock["epochs"]) == (None, 6)
    assert seen(version, case, shim=True) == stock


def test_metric_that_is_never_logged_is_an_error():
    for case, name, epochs in (("misspelled", "vall", 1), ("off", "val", 0)):
        shim = seen("2.6.6", case, shim=True)
        assert shim["error"].startswith(ERROR.format(name)) and shim["epochs"] == epochs


ENDS = sees(lambda seen: (seen["error"] or "").startswith(ERROR.format("val")))
PROOFS = (Proof("plateau-waits-for-validation", ENDS, case="waits", recommended="by hand"),)
