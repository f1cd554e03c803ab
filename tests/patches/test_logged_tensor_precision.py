"""PR 18686: the mean of values that are logged while bfloat16 is the default."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

PROOFS = (Proof("logged-tensor-precision", sees(lambda seen: seen["metrics"]["mean"] == (0.5).hex()), case="default"),)


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("pytorch-lightning", "2.0.0", "default"), ("pytorch-lightning", "2.0.9.post0", "default")],
)
def test_mean_of_ones_is_one(distribution, version, case):
    stock = run("logged_tensor_precision", Arm(distribution, version), case)
    assert stock.observations[0]["metrics"]["mean"] == (0.5).hex(), stock  # 512 ones

    shim = run("logged_tensor_precision", Arm(distribution, version, shim=True), case, toggle="logged-tensor-precision")
    assert shim.ok, shim
    official = run("logged_tensor_precision", Arm(distribution, "2.1.0"), case)
    assert official.ok, official
    assert shim.observations == official.observations, (shim, official)
    assert shim.observations[0]["metrics"]["mean"] == (1.0).hex()
