"""PR 19678: trainer.predict refuses a batch sampler that is not made like torch's."""

import pytest

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run

NAME = "predict-own-batch-sampler"


@pytest.mark.parametrize("case", ["like", "torch", "ranks"])
def test_other_loaders_are_unchanged(case):
    stock, shim = (
        run("predict_own_batch_sampler", Variant("lightning", "2.2.5", shim), case, toggle=NAME if shim else None)
        for shim in (False, True)
    )
    assert stock.ok is shim.ok is (case != "ranks"), stock
    assert stock.observations == shim.observations


def _is_refused(result):
    said = ("has no attribute 'batch_size'", "can't inject a (distributed) sampler into your batch sampler")
    return not result.ok and any(line in result.output for line in said)


PROOFS = tuple(
    Proof(
        NAME,
        _is_refused,
        case=case,
        right=observes({"predicted": [[0, 3, 6], [1, 4]], "indices": [[0, 3, 6], [1, 4]]}),
    )
    for case in ("own", "sub")
)
