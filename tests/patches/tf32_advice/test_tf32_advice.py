"""Issue 21256: TF32 is chosen by torch's newer setting."""

import pytest

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("version", ["2.0.9", "2.6.6"])
@pytest.mark.parametrize("case", ["trainer-unset", "trainer-older", "fabric-unset"])
def test_advice_is_still_given(version, case):
    distribution = "pytorch-lightning" if version < "2.1" else "lightning"
    stock, shim = (
        run("tf32_advice", Variant(distribution, version, shim), case, simulated_cuda=True) for shim in (False, True)
    )
    assert stock.ok and shim.ok, (stock, shim)
    assert stock.observations == shim.observations
    assert (stock.observations[0]["advice"] > 0) == case.endswith("unset")


PROOFS = tuple(
    Proof(
        "tf32-advice",
        ends_with("checking the matmul precision without a specific backend name"),
        case=case,
        simulated_cuda=True,
        recommended=f"{case}-older",
        since=since,
        right=sees(lambda seen: seen["advice"] == 0),
    )
    for case, since in (("trainer", ""), ("fabric", ""), ("monitor", "2.2.0"))
) + (
    Proof(
        "tf32-advice",
        ends_with("Invalid device id"),
        case="trainer-driver",
        simulated_cuda=True,
        recommended="trainer-older",
        right=sees(lambda seen: seen["advice"] == 0),
    ),
)
