"""Issue 18089: self.clip_gradients clips scaled gradients in 16-mixed precision."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run

NAME = "clipping-of-scaled-gradients"


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
@pytest.mark.parametrize("case", ["norm-by-hand", "value-by-hand", "two-by-hand", "automatic"])
def test_unscaled_gradients_are_clipped_as_on_stock(version, case):
    stock, shim = (
        run(
            "clipping_of_scaled_gradients",
            Variant("pytorch-lightning", version, shim),
            case,
            toggle=NAME if shim else None,
        )
        for shim in (False, True)
    )
    assert stock.ok and stock.observations[0]["moved"], stock
    assert shim.observations == stock.observations


@pytest.mark.parametrize("case", ["multiplied", "divided"])
def test_program_that_compensates_for_the_scale_trains_as_on_stock(case):
    """Why it is opt-in: with it these would not be clipped."""
    stock, shim, opted = (
        run(
            "clipping_of_scaled_gradients", Variant("pytorch-lightning", "2.6.6", on), case, toggle=toggle
        ).observations[0]
        for on, toggle in ((False, None), (True, None), (True, NAME))
    )
    assert stock["moved"] and stock["weights"] == shim["weights"] != opted["weights"]


PROOFS = tuple(
    Proof(
        NAME,
        sees(lambda seen: not seen["moved"]),
        case=case,
        observed=only("weights", "moved"),
        recommended=f"{case}-by-hand",
        right=sees(lambda seen: seen["moved"]),
    )
    for case in ("norm", "value", "two")
)
