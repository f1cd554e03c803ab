from tests.support.programs import Program, only, sees

PROGRAM = Program("last-checkpoint-newest", "2.6.6", alone=True)

test_other_checkpoints_are_unchanged = PROGRAM.unchanged("better", "link", "subclass", "second")


def test_last_checkpoint_is_written_when_the_other_is_not_due():
    stock, shim = PROGRAM.both("every")
    assert (stock.facts["last"], shim.facts["last"]) == (4, 8)


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["last"] == 2),
    "worse",
    "validation",
    recommended="second",
    observed=only("last"),
    right=sees(lambda seen: seen["last"] == 10),
)
