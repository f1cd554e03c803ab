from tests.support.programs import Program, sees

PROGRAM = Program("cli-both-save-hyperparameters", "2.4.0")

CONFLICT = "RuntimeError: Error while merging hparams: the keys ['{}'] are present"

test_logged_hyperparameters_are_unchanged = PROGRAM.unchanged(
    "model", "unlogged", check=sees(lambda seen: "_class_path" in seen["logged"])
)
test_hyperparameters_logged_by_hand_are_unchanged = PROGRAM.unchanged(
    "by hand", check=sees(lambda seen: "_class_path" not in seen["logged"])
)
test_conflict_is_refused_as_on_stock = PROGRAM.unchanged(
    "conflict", check=sees(lambda seen: seen["error"].startswith(CONFLICT.format("width")))
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: (seen["error"] or "").startswith(CONFLICT.format("_class_path"))),
    "both",
    right=sees(lambda seen: (seen["logged"]["width"], seen["logged"]["batch_size"]) == (2, 1)),
)
