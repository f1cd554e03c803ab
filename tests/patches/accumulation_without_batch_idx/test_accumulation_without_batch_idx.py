"""PR 18619: gradients are not accumulated if training_step takes no batch_idx."""

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def _first_gradient(value):
    return lambda seen: seen["gradients"][0] == [value.hex()]


PROOFS = (
    Proof(
        "accumulation-without-batch-idx",
        sees(lambda seen: seen["indices"] == [0] * 6 and _first_gradient(3 / 3)(seen)),  # of the third batch alone
        case="without",
        right=sees(_first_gradient((1 + 2 + 3) / 3)),
    ),
)


def test_iterators_accumulate_too():
    """2.1.0 reads the index before the iterator is used and begins its windows one batch early; here they are whole."""
    stock = run("accumulation_without_batch_idx", Variant("pytorch-lightning", "2.0.9"), "iterator")
    assert stock.observations[0]["indices"] == [0] * 6, stock
    toggle = "accumulation-without-batch-idx"
    shims = [
        run("accumulation_without_batch_idx", Variant("pytorch-lightning", "2.0.9", shim=True), case, toggle=toggle)
        for case in ("iterator", "with")
    ]
    assert shims[0].ok
    assert shims[0].observations == shims[1].observations, shims
