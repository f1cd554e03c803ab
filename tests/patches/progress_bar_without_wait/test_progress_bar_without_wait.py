"""Issue 21232: a metric for the progress bar makes each step wait for the GPU, also without one."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def seen(version, case, shim=False):
    variant = Variant("pytorch-lightning", version, shim)
    result = run("progress_bar_without_wait", variant, case, simulated_cuda=True, toggle="progress-bar-without-wait")
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_displayed_numbers_are_unchanged(version):
    stock, shim = seen(version, "read"), seen(version, "read", shim=True)
    assert len(stock["read"]) == 10 and stock["afterwards"]
    assert stock.pop("waits") >= shim.pop("waits") and shim == stock


PROOFS = (
    Proof(
        "progress-bar-without-wait",
        sees(lambda seen: seen["waits"] >= 8),  # one for each batch, at least
        simulated_cuda=True,
        one_card=True,
        recommended="off",
        alone=True,
    ),
)
