from tests.equivalence.proof import only, proofs, sees
from tests.support.programs import Program

NAME = "checkpoint-after-own-validation"
PROGRAM = Program(NAME, "2.6.6", alone=True)

test_other_checkpoints_are_unchanged = PROGRAM.unchanged("subclass", "apart", "no-monitor", "epochs")

PROOFS = proofs(
    NAME,
    sees(lambda seen: seen["best"] != "step=4.ckpt"),
    "within",
    recommended="subclass",
    since="2.5.5",
    observed=only("best"),
    right=sees(lambda seen: seen["best"] == "step=4.ckpt"),
)
