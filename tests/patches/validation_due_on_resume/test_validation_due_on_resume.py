import json

from tests.support.programs import Program, sees

PROGRAM = Program("validation-due-on-resume", "2.6.6", "pytorch-lightning")

test_resumed_run_equals_the_uninterrupted_run = PROGRAM.fixed(
    "max_steps, across epochs: within", "stateful, validated every two batches: within", reference="{}, whole"
)
test_run_without_a_validation_that_is_due_is_unchanged = PROGRAM.unchanged(
    "plain: within", "validated every two batches: validation"
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: json.loads(seen["events"][0]) == ["batch starts", 1, 6, 2]),
    "validated every two batches: within",
    recommended="{}, whole",
    right=sees(lambda seen: json.loads(seen["events"][0])[0] == "validation starts"),
)
