"""PR 18619: gradients are not accumulated if training_step takes no batch_idx."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

PROOFS = (Proof("accumulation-without-batch-idx", sees(lambda seen: set(seen["indices"]) == {0}), case="without"),)


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("pytorch-lightning", "2.0.0", "without"), ("pytorch-lightning", "2.0.9.post0", "without")],
)
def test_gradients_accumulate(distribution, version, case):
    stock = run("accumulation_without_batch_idx", Arm(distribution, version), case)
    first = stock.observations[0]
    assert first["indices"] == [0] * 6, stock
    assert first["gradients"][0] == [(3 / 3).hex()], stock  # of the third batch alone

    shim = run(
        "accumulation_without_batch_idx",
        Arm(distribution, version, shim=True),
        case,
        toggle="accumulation-without-batch-idx",
    )
    assert shim.ok, shim
    official = run("accumulation_without_batch_idx", Arm(distribution, "2.1.0"), case)
    assert official.ok, official
    assert shim.observations == official.observations, (shim, official)
    assert shim.observations[0]["gradients"][0] == [((1 + 2 + 3) / 3).hex()]


def test_iterators_accumulate_too():
    """2.1.0 reads the index before the iterator is used and begins its windows one batch early; here they are whole."""
    stock = run("accumulation_without_batch_idx", Arm("pytorch-lightning", "2.0.9"), "iterator")
    assert stock.observations[0]["indices"] == [0] * 6, stock
    toggle = "accumulation-without-batch-idx"
    shims = [
        run("accumulation_without_batch_idx", Arm("pytorch-lightning", "2.0.9", shim=True), case, toggle=toggle)
        for case in ("iterator", "with")
    ]
    assert shims[0].ok
    assert shims[0].observations == shims[1].observations, shims
