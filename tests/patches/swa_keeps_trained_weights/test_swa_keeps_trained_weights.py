"""After PR 21396: the weights of a run that ended before averaging began."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run


def observed(variant, case=""):
    result = run("swa_keeps_trained_weights", variant, case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("lightning", "2.6.1"), ("pytorch-lightning", "2.6.6")])
def test_trained_weights_are_kept(distribution, version):
    assert observed(Variant(distribution, version))["untrained"]

    shim = observed(Variant(distribution, version, shim=True))
    assert not shim["untrained"]
    assert shim == observed(Variant(distribution, version), "without")


def test_average_is_unchanged():
    """The scenario of the bug before it, whose run goes beyond the start of averaging."""
    stock, shim = (run("swa_infinite_epochs", Variant("lightning", "2.6.6", shim=on)) for on in (False, True))
    assert stock.ok and stock.observations[0]["averaged"], stock
    assert shim.ok and shim.observations == stock.observations, shim


PROOFS = (
    Proof(
        "swa-keeps-trained-weights",
        sees(lambda seen: seen["untrained"]),
        recommended="without",
        observed=only("weight"),
    ),
)
