"""PR 21560: limit_val_batches=0, and val_check_interval is more than the training has batches."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

OLD = ["2.0.0", "2.2.5", "2.6.1"]


def seen(version, case, shim=False):
    result = run("interval_without_validation", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", OLD)
def test_training_runs(version):
    assert seen(version, "off")["error"].startswith("`val_check_interval` (100) must be less than or equal")
    assert seen(version, "off", shim=True) == {"error": None, "steps": 8, "epochs": 2, "interval": 100, "warned": []}


def test_logger_warning_equals_the_fixed_release():
    shim = seen("2.2.5", "logged", shim=True)
    assert shim == seen("2.6.4", "logged")
    assert shim["warned"] == ["PossibleUserWarning"]


@pytest.mark.parametrize("case", ["on", "fits"])
@pytest.mark.parametrize("version", OLD)
def test_run_with_validation_or_shorter_interval_is_unchanged(version, case):
    stock = seen(version, case)
    assert (stock["error"] is None) == (case == "fits")
    assert seen(version, case, shim=True) == stock


REFUSED = sees(lambda seen: "`val_check_interval`" in (seen["error"] or ""))
PROOFS = (
    Proof("interval-without-validation", REFUSED, case="off"),
    Proof("interval-without-validation", REFUSED, case="logged"),
)
