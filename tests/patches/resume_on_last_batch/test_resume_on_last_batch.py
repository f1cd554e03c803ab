import json

import pytest

from tests.support.programs import Program, sees

PROGRAM = Program("resume-on-last-batch", "2.6.6", "pytorch-lightning", alone=True)

test_run_resumed_elsewhere_is_unchanged = PROGRAM.unchanged(
    "plain: within", "plain: epoch end", "plain: validation", "stateful: validation", on=("2.5.0", "2.6.6")
)


@pytest.mark.parametrize("stop", ["last batch", "validation"])
@pytest.mark.parametrize(
    "name",
    [
        "stateful, lazy",
        "stateful, limit_train_batches",
        "CombinedLoader, stateful streams",
        "stream",
        "stateful stream",
    ],
)
def test_epoch_after_the_resume_has_all_batches(name, stop):
    assert PROGRAM.shim(f"{name}: {stop}").facts == PROGRAM.stock(f"{name}: {stop}, whole").facts


def begins_in_epoch(number):
    """True if the first event of the resumed run is in this epoch."""
    return sees(lambda seen: json.loads(seen["events"][0])[1] == number)


PROOFS = tuple(
    PROGRAM.proof(
        shows_bug=begins_in_epoch(2),
        right=begins_in_epoch(1),
        case=f"{name}: last batch",
        recommended=f"{name}: last batch, whole",
    )
    for name in ("plain", "no validation", "validated every two batches", "stateful")
)
