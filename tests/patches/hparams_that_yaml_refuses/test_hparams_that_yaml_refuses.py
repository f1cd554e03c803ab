"""PR 19804: a hyperparameter that YAML cannot hold, and says so by a ValueError, ended the training."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

ERROR = "ValueError: dictionary update sequence element #0 has length 1"
KINDS = {"dtype": {"special": "dtype"}, "metric": {"special": "MeanMetric"}}


def seen(version, case, shim=False):
    result = run("hparams_that_yaml_refuses", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", KINDS)
@pytest.mark.parametrize("version", ["2.0.0", "2.2.5"])
def test_training_runs_and_other_hyperparameters_are_written(version, case):
    assert seen(version, case)["error"].startswith(ERROR)
    shim = seen(version, case, shim=True)
    assert shim == seen("2.3.0", case)
    assert (shim["error"], shim["steps"], shim["skipped"]) == (None, 2, list(KINDS[case]))
    assert shim["written"] == {"width": 2, "special": None, "other": None, **KINDS[case]}


def test_two_unserializable_hparams_are_both_dropped():
    shim = seen("2.2.5", "both", shim=True)
    assert shim == seen("2.3.0", "both")
    assert shim["written"] == {"width": 2, "special": "dtype", "other": "Refusing"}


@pytest.mark.parametrize("case", ["plain", "TypeError"])
def test_serializable_hparams_are_written_as_on_stock(case):
    stock = seen("2.2.5", case)
    assert stock["error"] is None
    assert seen("2.2.5", case, shim=True) == stock


FAILS = sees(lambda seen: (seen["error"] or "").startswith(ERROR))
PROOFS = tuple(Proof("hparams-that-yaml-refuses", FAILS, case=case) for case in KINDS)
