"""PR 20873: to_torchscript leaves check_inputs on the CPU."""

import pytest

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

NAME = "torchscript-check-inputs"


@pytest.mark.parametrize("case", ["cpu", "hook"])
def test_trace_on_the_cpu_is_unchanged(case):
    stock, shim = (
        run("torchscript_check_inputs", Variant("lightning", "2.5.1", shim), case, toggle=NAME if shim else None)
        for shim in (False, True)
    )
    assert stock.ok, stock
    assert stock.observations == shim.observations
    assert stock.observations[0]["hooked"] == (case == "hook")


PROOFS = (
    Proof(
        NAME,
        ends_with("RuntimeError: Expected all tensors to be on the same device"),
        case="gpu",
        simulated_cuda=True,
        right=sees(lambda seen: seen["same"] and seen["left"] == "cpu"),
    ),
)
