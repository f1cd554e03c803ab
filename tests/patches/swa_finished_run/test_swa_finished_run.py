from tests.support.programs import Program, proofs, sees

test_run_that_keeps_its_weights_is_unchanged = Program("swa-finished-run", "2.6.6").unchanged(
    "within", "batch norm", "subclass"
)

PROOFS = proofs(
    "swa-finished-run",
    sees(lambda seen: seen["is_whole"] is False),
    "plain",
    recommended="within",
    right=sees(lambda seen: seen["is_whole"] is True),
)
