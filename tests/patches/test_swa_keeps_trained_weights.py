"""After PR 21396: the weights of a run that ended before averaging began."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.arms import Arm, run


def observed(arm, case=""):
    result = run("swa_keeps_trained_weights", arm, case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("lightning", "2.6.1"), ("pytorch-lightning", "2.6.6")])
def test_trained_weights_are_kept(distribution, version):
    assert observed(Arm(distribution, version))["untrained"]

    shim = observed(Arm(distribution, version, shim=True))
    assert not shim["untrained"]
    assert shim == observed(Arm(distribution, version), "without")


def test_release_before_has_no_such_bug():
    assert not observed(Arm("lightning", "2.6.0"))["untrained"]


PROOFS = (
    Proof(
        "swa-keeps-trained-weights",
        sees(lambda seen: seen["untrained"]),
        recommended="without",
        observed=only("weight"),
    ),
)
