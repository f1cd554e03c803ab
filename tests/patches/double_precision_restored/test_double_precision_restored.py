"""With precision="64-true", loading a checkpoint rounds its weights to float32."""

import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["single", "own", "fit-converted"])
def test_program_that_needs_no_fix_is_unchanged(case):
    stock, shim = (run("double_precision_restored", Variant("lightning", "2.6.6", on), case) for on in (False, True))
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


PROOFS = proofs(
    "double-precision-restored",
    sees(lambda seen: seen["exact"] is False and seen["dtype"] == "torch.float64"),
    "fit",
    "validate",
    "test",
    "predict",
    recommended="{}-converted",
    right=sees(lambda seen: seen["exact"] is True),
)
