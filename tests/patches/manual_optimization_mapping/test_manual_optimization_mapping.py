"""PR 21011: manual optimization refuses a mapping that is no dict."""

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import Variant, run

SEEN = {"seen": [[["loss", "width"], 3, False]]}


def test_dict_is_accepted_as_on_stock():
    for shim in (False, True):
        result = run("manual_optimization_mapping", Variant("pytorch-lightning", "2.5.2", shim), "dict")
        assert result.observations == [SEEN], result


PROOFS = (
    Proof(
        "manual-optimization-mapping",
        ends_with("In manual optimization, `training_step` must either return a Tensor or have no return"),
        right=observes(SEEN),
    ),
)
