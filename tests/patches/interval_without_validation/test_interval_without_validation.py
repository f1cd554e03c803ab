from tests.support.programs import Program, sees

PROGRAM = Program("interval-without-validation", "2.2.5", "pytorch-lightning")

OLD = ["2.0.0", "2.2.5", "2.6.1"]

PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen: (seen["error"] or "").startswith("`val_check_interval` (100) must be less than or equal")),
        case=case,
        right=sees(lambda seen, warned=warned: (seen["steps"], seen["warned"]) == (8, warned)),
    )
    for case, warned in (("off", []), ("logged", ["PossibleUserWarning"]))
)

test_run_with_shorter_interval_is_unchanged = PROGRAM.unchanged(
    "fits", on=OLD, check=sees(lambda seen: seen["error"] is None)
)
test_run_with_validation_is_refused_as_on_stock = PROGRAM.unchanged(
    "on", on=OLD, check=sees(lambda seen: seen["error"] is not None)
)
