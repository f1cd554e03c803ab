from tests.equivalence.proof import only, sees
from tests.support.programs import Program

PROGRAM = Program("monitored-checkpoint-first", "2.6.6", toggle="all")

test_callbacks_in_the_right_order_are_unchanged = PROGRAM.unchanged("best_first", "alone", on=("1.8.0", "2.6.6"))

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["best"] == ["best-epoch=1.ckpt", "best-epoch=3.ckpt"]),
    "last_first",
    recommended="best_first",
    observed=only("best"),
    right=sees(lambda seen: seen["best"] == ["best-epoch=3.ckpt"]),
)
