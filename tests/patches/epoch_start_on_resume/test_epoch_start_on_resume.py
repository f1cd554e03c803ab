import json

from tests.support.programs import Program, sees

PROGRAM = Program("epoch-start-on-resume", "2.6.6", "pytorch-lightning")

test_swa_of_a_resumed_run_equals_that_of_the_uninterrupted_run = PROGRAM.fixed(
    "SWA from the start: within", "SWA with a scheduler: first batch", reference="{}, whole"
)
test_run_that_is_right_on_stock_is_unchanged = PROGRAM.unchanged(
    "plain: within", "GradientAccumulationScheduler: epoch end", "SWA: epoch end"
)


def first_batch_ends_at(step):
    return sees(
        lambda seen: next(event for event in map(json.loads, seen["events"]) if event[0] == "batch ends")[2] == step
    )


PROOFS = PROGRAM.proofs(
    first_batch_ends_at(4),
    "GradientAccumulationScheduler: within",
    right=first_batch_ends_at(3),
    recommended="{}, whole",
    since="2.5.0",  # before, mid-epoch-resume has the same effect
)
