from tests.support.programs import Program, only, sees

PROGRAM = Program("checkpoint-after-own-validation", "2.6.6", alone=True)

test_other_checkpoints_are_unchanged = PROGRAM.unchanged("subclass", "apart", "no-monitor", "epochs")

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["best"] != "step=4.ckpt"),
    "within",
    recommended="subclass",
    since="2.5.5",
    observed=only("best"),
    right=sees(lambda seen: seen["best"] == "step=4.ckpt"),
)
