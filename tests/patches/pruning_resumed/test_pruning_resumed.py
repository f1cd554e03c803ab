import json

from tests.support.programs import Program, ends_with, observes, sees

PROGRAM = Program("pruning-resumed", "2.6.6", "pytorch-lightning")

test_other_programs_are_unchanged = PROGRAM.unchanged("own", "other", "saved", on=["2.0.0", "2.6.6"])
test_uninterrupted_run_is_unchanged = PROGRAM.unchanged("ModelPruning: within, whole", on=["2.0.0", "2.6.6"])
test_evaluation_loads_masked_weights = PROGRAM.fixed(
    "validate", "test", bug=ends_with("weight_mask"), right=observes({"is_same": True}), on=["2.0.0", "2.6.6"]
)
test_resumed_run_equals_the_uninterrupted_run = PROGRAM.fixed(
    "ModelPruning by layer, Adam: validation",
    "ModelPruning, not permanent: last batch",
    reference="{}, whole",
    toggle="default,exact-resume",
)


def weights_are(value):
    """True if this is the sum of the weights after the first batch of the resumed run."""

    def check(seen):
        events = map(json.loads, seen["events"])
        return next((event[5] for event in events if event[0] == "batch ends"), None) == value

    return sees(check)


RIGHT = weights_are(5.391503)
PROOFS = PROGRAM.proofs(
    lambda result: not RIGHT(result),
    "ModelPruning: epoch end",
    "ModelPruning, not permanent: epoch end",
    recommended="{}, whole",
    right=RIGHT,
)
