from tests.equivalence.proof import only, proofs, sees
from tests.support.programs import Program

PROGRAM = Program("lr-finder-slope", "2.5.2", alone=True)

PROOFS = proofs(
    "lr-finder-slope",
    sees(lambda seen: seen["suggested"] != seen["steepest"]),
    "exponential",
    observed=only("suggested"),
    right=sees(lambda seen: seen["suggested"] == seen["steepest"]),
    note="the losses, which show that the searches were the same up to rounding",
)

test_patch_is_opt_in = PROGRAM.unchanged(
    "exponential", check=sees(lambda seen: seen["suggested"] != seen["steepest"]), toggle="default"
)


def test_suggestion_is_none_for_too_few_losses():
    assert PROGRAM.shim("few").facts["suggested"] is None
