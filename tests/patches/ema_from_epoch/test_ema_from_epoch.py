from tests.support.programs import Program, only, sees

PROGRAM = Program("ema-from-epoch", "2.6.6", toggle="all")

test_other_averages_are_unchanged = PROGRAM.unchanged("subclass", "step", "both", "plain")

RIGHT = 0.05078125
"""The average of the last two epochs, each of whose two steps and its end count with a weight of one half."""

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["weight"] != [RIGHT.hex()]),
    "epoch",
    recommended="subclass",
    since="2.6.0",
    observed=only("weight"),
    right=sees(lambda seen: seen["weight"] == [RIGHT.hex()]),
)
