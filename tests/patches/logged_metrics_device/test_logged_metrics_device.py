import pytest

from tests.equivalence.proof import ends_with, proofs
from tests.support.variants import Variant, run

ERROR = "No backend type associated with device type cpu"
pytestmark = pytest.mark.distributed


def test_excluded_patch_leaves_the_bug():
    variant = Variant("lightning", "2.3.3", shim=True)
    excluded = run("logged_metrics_device", variant, "fit_twice", simulated_cuda=True, toggle="-19813")
    assert ERROR in excluded.output, excluded


def _on_their_devices(result):
    one_card = ["cuda:0", "cuda:0"]
    return [rank["device"] for rank in result.observations] in (["cuda:0", "cuda:1"], one_card)


PROOFS = proofs(
    "logged-metrics-device",
    ends_with(ERROR),
    "lr_find",
    "fit_twice",
    simulated_cuda=True,
    one_card=True,
    right=_on_their_devices,
)
