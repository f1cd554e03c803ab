"""PR 18500: torch's default dtype after an exception under double precision."""

import pytest

from tests.equivalence.proof import Proof, observes, sees
from tests.support.variants import Variant, run


def seen(version, case, shim=False):
    result = run("default_dtype_restored", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.0.9"])
def test_default_dtype_of_the_user_is_restored(version):
    assert seen(version, "user")["default"] == "torch.float64"
    shim = seen(version, "user", shim=True)
    assert shim == {"error": "diverged", "default": "torch.bfloat16", "made": "torch.bfloat16"}
    assert shim == seen("2.1.0", "user")


def test_step_without_an_error_is_unchanged():
    assert seen("2.0.0", "well") == seen("2.0.0", "well", shim=True)


DOUBLE = sees(lambda seen: seen["default"] == "torch.float64")
SINGLE = observes({"error": "diverged", "default": "torch.float32", "made": "torch.float32"})
OWN = [
    observes({"error": None, "default": f"torch.{dtype}", "made": f"torch.{dtype}"}) for dtype in ("float32", "float64")
]
PROOFS = (
    *(Proof("default-dtype-restored", DOUBLE, case=case, right=SINGLE) for case in ("trainer", "fabric")),
    Proof("default-dtype-restored", OWN[0], case="own", right=OWN[1]),
)
