import json

from tests.equivalence.proof import proofs, sees
from tests.support.programs import Program

NAME = "mid-epoch-resume"
PROGRAM = Program(NAME, "2.4.0", "pytorch-lightning", alone=True)

test_resumed_run_equals_the_uninterrupted_run = PROGRAM.fixed(
    "plain: last batch",
    "validated every two batches: within",
    "StepLR by step, accumulation: within",
    reference="{}, whole",
    on=("2.0.0", "2.4.0"),
)
test_run_that_is_right_on_stock_is_unchanged = PROGRAM.unchanged(
    "plain: epoch end", "stateful: epoch end", "plain: within, whole"
)


def begins_with_batch(number):
    return sees(
        lambda seen: next(event for event in map(json.loads, seen["events"]) if event[0] == "batch starts")[3] == number
    )


PROOFS = proofs(NAME, begins_with_batch(1), "plain: within", right=begins_with_batch(2))
