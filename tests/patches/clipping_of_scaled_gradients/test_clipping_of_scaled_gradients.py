"""Issue 18089: self.clip_gradients clips scaled gradients in 16-mixed precision."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

NAME = "clipping-of-scaled-gradients"


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
@pytest.mark.parametrize("case", ["norm-by-hand", "value-by-hand", "two-by-hand", "automatic"])
def test_gradients_that_are_unscaled_are_clipped_as_before(version, case):
    stock, shim = (
        run(
            "clipping_of_scaled_gradients", Arm("pytorch-lightning", version, shim), case, toggle=NAME if shim else None
        )
        for shim in (False, True)
    )
    assert stock.ok and stock.observations[0]["moved"], stock
    assert shim.observations == stock.observations


PROOFS = tuple(
    Proof(
        NAME,
        sees(lambda seen: not seen["moved"]),
        case=case,
        recommended=f"{case}-by-hand",
        right=sees(lambda seen: seen["moved"]),
    )
    for case in ("norm", "value", "two")
)
