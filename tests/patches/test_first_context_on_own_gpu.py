"""PR 19184: every rank joins the process group with GPU 0 as its current device."""

import pytest

from tests.equivalence.proof import Proof
from tests.support.arms import Arm, run

pytestmark = pytest.mark.distributed
PATCH = "first-context-on-own-gpu"


def all_on_first(result):
    return result.ok and [rank["current"] for rank in result.observations] == [0, 0]


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("pytorch-lightning", "2.0.0", "trainer"), ("lightning", "2.1.4", "fabric")],
)
def test_current_device_is_the_ranks_own(distribution, version, case):
    stock = run("first_context_on_own_gpu", Arm(distribution, version), case, simulated_cuda=True)
    assert all_on_first(stock) and [rank["own"] for rank in stock.observations] == [0, 1], stock
    shim = run(
        "first_context_on_own_gpu", Arm(distribution, version, shim=True), case, simulated_cuda=True, toggle=PATCH
    )
    assert shim.ok and [rank["current"] for rank in shim.observations] == [0, 1], shim


PROOFS = tuple(Proof(PATCH, all_on_first, case=case, simulated_cuda=True) for case in ("trainer", "fabric"))
