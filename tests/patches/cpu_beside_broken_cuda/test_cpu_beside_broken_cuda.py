"""PR 19234: training on the CPU of a machine whose CUDA driver does not work."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

BROKEN = "The NVIDIA driver on your system is too old"


def seen(version, case, shim=False):
    result = run("cpu_beside_broken_cuda", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.1.3"])
def test_driver_is_not_queried(version):
    assert seen(version, "broken") == {"error": BROKEN, "steps": 0, "asked": ["0"]}
    assert seen(version, "broken", shim=True) == {"error": None, "steps": 2, "asked": []} == seen("2.1.4", "broken")


@pytest.mark.parametrize(("case", "asked"), [("none", []), ("works", ["0"])])
def test_working_driver_is_queried_as_on_stock(case, asked):
    assert seen("2.1.3", case) == seen("2.1.3", case, shim=True) == {"error": None, "steps": 2, "asked": asked}


PROOFS = (Proof("cpu-beside-broken-cuda", sees(lambda seen: seen["error"] == BROKEN), case="broken"),)
