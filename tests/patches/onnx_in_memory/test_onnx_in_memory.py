"""PR 20172: to_onnx into a buffer leaves it empty, and writes a file that has the buffer's name."""

import pytest

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run

NAME = "onnx-in-memory"


@pytest.mark.parametrize("case", ["path", "nothing"])
def test_path_and_missing_input_work_as_on_stock(case):
    stock, shim = (
        run("onnx_in_memory", Variant("lightning", "2.4.0", shim), case, toggle=NAME if shim else None)
        for shim in (False, True)
    )
    assert stock.ok is (case == "path"), stock
    assert stock.observations == shim.observations
    assert len(stock.observations) == 1


def _with(text, files):
    return observes({"buffer": text, "files": files, "training": True, "moved": 1})


PROOFS = tuple(
    Proof(NAME, _with("", 1), case=case, right=_with(f"[{size}, 32] False {{'verbose': False}}", 0))
    for case, size in (("buffer", 1), ("example", 2))
)
