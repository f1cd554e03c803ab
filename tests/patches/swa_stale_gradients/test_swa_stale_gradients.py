import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.programs import Program

PROGRAM = Program("swa-stale-gradients", "2.6.6")

test_average_without_old_gradients_is_unchanged = PROGRAM.unchanged("plain", "dropped")


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_weights_are_the_average_with_a_gradient_scaler(version):
    stock, shim = PROGRAM.both("scaler", version)
    assert not stock.observations[0]["is_average"], stock
    assert shim.ok and shim.observations[0]["is_average"], shim


PROOFS = proofs(
    "swa-stale-gradients",
    sees(lambda seen: not seen["is_average"]),
    "norm",
    recommended="dropped",
    right=sees(lambda seen: seen["is_average"]),
)
