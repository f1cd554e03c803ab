import json

from tests.support.programs import Program, sees

PROGRAM = Program("resumed-metrics", "2.6.6", "pytorch-lightning", alone=True)

test_resumed_run_equals_the_uninterrupted_run = PROGRAM.fixed(
    "plateau by epoch: within",
    "plateau by epoch: validation",
    "plateau by step: validation",
    "plateau by two steps on a validation metric: validation",
    "EarlyStopping, stream: validation",
    "ModelCheckpoint, best: validation",
    reference="{}, whole",
)
test_run_that_is_right_on_stock_is_unchanged = PROGRAM.unchanged(
    "StepLR by epoch: epoch end",
    "EarlyStopping after validation: epoch end",
    "plateau by epoch: epoch end, whole",
    "EarlyStopping: epoch end, whole",
    "plain: epoch end, whole",
    on=("2.0.0", "2.6.6"),
)


def rate_is(rate):
    """True if this is the learning rate of the first batch after the resume."""

    def check(seen):
        events = map(json.loads, seen["events"])
        return next(event[4] for event in events if event[0] == "batch ends") == [[rate]]

    return sees(check)


PROOFS = PROGRAM.proofs(
    rate_is(0.1),
    "plateau by epoch: epoch end",
    "plateau, stream: epoch end",
    recommended="{}, whole",
    right=rate_is(0.05),
)
