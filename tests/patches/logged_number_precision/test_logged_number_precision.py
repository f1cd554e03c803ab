from tests.support.programs import Program, sees

PROGRAM = Program("logged-number-precision", "2.1.2", "pytorch-lightning")

PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen: seen["metrics"]["float"] == (0.12353515625).hex()),
        case=case,
        since=since,
        right=sees(lambda seen: abs(float.fromhex(seen["metrics"]["float"]) - 0.123456) < 1e-8),
    )
    for case, since in (("default", ""), ("precision", "2.1.0"))
)

# With the same warnings and the same number of reads of the module's device.
test_numbers_without_a_trainer_or_half_precision_are_logged_as_on_stock = PROGRAM.unchanged(
    "fabric", "alone", "float32", on=("2.0.0", "2.0.9", "2.1.2")
)
