from tests.support.programs import Program, only, sees

PROGRAM = Program("lr-finder-slope", "2.5.2", alone=True)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["suggested"] != seen["steepest"]),
    "exponential",
    observed=only("suggested"),
    right=sees(lambda seen: seen["suggested"] == seen["steepest"]),
    note="the losses, which show that the searches were the same up to rounding",
)


def test_suggestion_is_none_for_too_few_losses():
    assert PROGRAM.shim("few").facts["suggested"] is None
