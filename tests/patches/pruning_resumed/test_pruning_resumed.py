import json

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.programs import Program

NAME = "pruning-resumed"
PROGRAM = Program(NAME, "2.6.6", "pytorch-lightning")

test_other_programs_are_unchanged = PROGRAM.unchanged("own", "other", "saved", on=["2.0.0", "2.6.6"])
test_uninterrupted_run_is_unchanged = PROGRAM.unchanged("ModelPruning: within, whole", on=["2.0.0", "2.6.6"])


@pytest.mark.parametrize("case", ["validate", "test"])
@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_evaluation_loads_masked_weights(case, version):
    stock, shim = PROGRAM.both(case, version)
    assert not stock.ok and "weight_mask" in stock.output
    assert shim.ok and shim.observations == [{"is_same": True}]


@pytest.mark.parametrize(
    "case",
    [
        "ModelPruning: epoch end",
        "ModelPruning by layer, Adam: validation",
        "ModelPruning, not permanent: last batch",
    ],
)
def test_resumed_run_equals_the_uninterrupted_run(case):
    stock, shim = PROGRAM.both(case)
    whole = PROGRAM.stock(f"{case}, whole")
    assert stock.observations != whole.observations
    assert shim.observations == whole.observations


def weights_are(value):
    """True if this is the sum of the weights after the first batch of the resumed run."""

    def check(seen):
        events = map(json.loads, seen["events"])
        return next((event[5] for event in events if event[0] == "batch ends"), None) == value

    return sees(check)


RIGHT = weights_are(5.391503)
PROOFS = tuple(
    Proof(NAME, shows_bug=lambda result: not RIGHT(result), right=RIGHT, case=case, recommended=f"{case}, whole")
    for case in ("ModelPruning: epoch end", "ModelPruning, not permanent: epoch end")
)
