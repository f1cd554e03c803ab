import pytest

from lightning_patches.patch import Need
from tests.support.programs import Program, only, sees

NAME = "clipping-of-scaled-gradients"
PROGRAM = Program(NAME, "2.6.6", "pytorch-lightning", alone=True)

test_unscaled_gradients_are_clipped_as_on_stock = PROGRAM.unchanged(
    "norm-by-hand",
    "value-by-hand",
    "two-by-hand",
    "automatic",
    on=("2.0.0", "2.6.6"),
    check=sees(lambda seen: seen["moved"]),
)


@pytest.mark.parametrize("case", ["multiplied", "divided"])
def test_program_that_compensates_for_the_scale_trains_as_on_stock(case):
    """The patch is opt-in because these programs would not clip with it."""
    stock, shim, opted = (
        PROGRAM.run(case, shim=on, toggle=toggle).observations[0]
        for on, toggle in ((False, ""), (True, "default"), (True, NAME))
    )
    assert stock["moved"] and stock["weights"] == shim["weights"] != opted["weights"]


PROOFS = PROGRAM.proofs(
    sees(lambda seen: not seen["moved"]),
    "norm",
    "value",
    "two",
    recommended="{}-by-hand",
    observed=only("weights", "moved"),
    right=sees(lambda seen: seen["moved"]),
    needs=(Need("torch.amp:GradScaler"),),
)
