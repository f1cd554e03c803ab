"""Pull request 21016: since rich 14.1 a RichProgressBar up to Lightning 2.5.2 ends the run before its first batch."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.arms import Arm, run

SCENARIO = "rich_progress_bar"
ERROR = "IndexError: pop from empty list"
PROOFS = (
    Proof(
        "rich-progress-bar", sees(lambda seen: seen.get("error") == ERROR), observed=only("bars", "weights", "epochs")
    ),
)


@pytest.fixture(scope="module")
def right():
    """The first official release that can."""
    result = run(SCENARIO, Arm("lightning", "2.5.3"))
    assert result.ok, result
    assert result.observations[0]["epochs"] == 3
    return result.observations


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.5.2")])
def test_all_stages_run(distribution, version, right):
    stock = run(SCENARIO, Arm(distribution, version))
    assert not stock.ok, stock
    assert stock.observations[0]["error"] == ERROR
    shim = run(SCENARIO, Arm(distribution, version, shim=True))
    assert shim.ok, shim
    assert shim.observations == right


def test_the_first_official_release_is_left_alone(right):
    shim = run(SCENARIO, Arm("lightning", "2.5.3", shim=True), toggle="rich-progress-bar")
    assert shim.observations == right
    assert "lightning_patches: lightning 2.5.3:" not in shim.output
