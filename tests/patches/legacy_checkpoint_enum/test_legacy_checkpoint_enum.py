"""PR 18094: a checkpoint of 1.x with the fault-tolerant mode cannot be loaded."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

MISSING = "AttributeError: module 'pytorch_lightning.utilities.enums' has no attribute '_FaultTolerantMode'"
CASES = ("model", "fit", "context")


def seen(version, case, shim=False):
    result = run("legacy_checkpoint_enum", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.0.5"])
def test_checkpoint_is_loaded_without_leftovers(version):
    assert seen(version, "model") == {"error": MISSING, "found": None, "left": False}
    shim = seen(version, "model", shim=True)
    assert shim == seen("2.0.6", "model")
    assert shim["found"]["mode"] == ["_FaultTolerantMode", "DISABLED", "disabled"]
    assert not shim["left"]


@pytest.mark.parametrize("case", ["plain", "broken", "own"])
def test_other_checkpoint_contents_load_as_on_stock(case):
    stock = seen("2.0.5", case)
    assert seen("2.0.5", case, shim=True) == stock
    assert (stock["error"] is None) == (case != "broken")
    assert stock["left"] == (case == "own")


FAILS = sees(lambda seen: (seen["error"] or "").endswith("has no attribute '_FaultTolerantMode'"))
LOADS = sees(lambda seen: seen["error"] is None and bool(seen["found"]) and not seen["left"])
PROOFS = tuple(Proof("legacy-checkpoint-enum", FAILS, case=case, right=LOADS) for case in CASES)
