"""PR 19046: Python numbers that are logged while bfloat16 is the default."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

PROOFS = tuple(
    Proof(
        "logged-number-precision",
        sees(lambda seen: seen["metrics"]["float"] == (0.12353515625).hex()),
        case=case,
        since=since,
        right=sees(lambda seen: abs(float.fromhex(seen["metrics"]["float"]) - 0.123456) < 1e-8),
    )
    for case, since in (("default", ""), ("precision", "2.1.0"))
)


@pytest.mark.parametrize("version", ["2.0.0", "2.0.9", "2.1.2"])
@pytest.mark.parametrize("case", ["fabric", "alone", "float32"])
def test_numbers_without_a_trainer_or_half_precision_are_logged_as_on_stock(version, case):
    """With the warnings of stock, and the module asked for its device as often."""
    stock, shim = (
        run("logged_number_precision", Variant("pytorch-lightning", version, shim=on), case) for on in (False, True)
    )
    assert stock.ok and shim.ok, (stock, shim)
    assert shim.observations == stock.observations
