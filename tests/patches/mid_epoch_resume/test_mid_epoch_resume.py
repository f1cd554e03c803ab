import json

import pytest

from tests.support.programs import Program, sees

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


@pytest.mark.parametrize("version", ["2.0.0", "2.4.0"])
def test_backbone_rate_is_raised_once_for_the_resumed_epoch(version):
    case = "BackboneFinetuning, only the head in the optimizer: within"
    whole = PROGRAM.stock(f"{case}, whole", version)
    for toggle in ("default,exact-resume", f"default,exact-resume,-{NAME}"):
        shim = PROGRAM.shim(case, version, toggle=toggle)
        assert (shim.observations == whole.observations) is not toggle.endswith(NAME)


PROOFS = PROGRAM.proofs(begins_with_batch(1), "plain: within", right=begins_with_batch(2))
