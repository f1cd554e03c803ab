"""PR 21105: torch is not told which GPU a rank uses, and guesses."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.arms import Arm, run

pytestmark = pytest.mark.distributed
PATCH = "process-group-device-id"


def observed(arm, case, simulated_cuda=True):
    result = run(
        "process_group_device_id", arm, case, simulated_cuda=simulated_cuda, toggle=PATCH if arm.shim else None
    )
    assert result.ok and len(result.observations) == 2, result
    return result.observations


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("lightning", "2.5.4", "trainer"), ("lightning", "2.5.4", "fabric"), ("pytorch-lightning", "2.1.4", "swapped")],
)
def test_group_knows_the_device_of_each_rank(distribution, version, case):
    stock = observed(Arm(distribution, version), case)
    assert [rank["bound"] for rank in stock] == ["None", "None"]
    shim = observed(Arm(distribution, version, shim=True), case)
    assert [rank["bound"] for rank in shim] == [rank["device"] for rank in stock]
    assert [rank["device"] for rank in shim] == (["cuda:1", "cuda:0"] if case == "swapped" else ["cuda:0", "cuda:1"])
    assert [rank["weights"] for rank in shim] == [rank["weights"] for rank in stock]


def test_official_fix_is_left_alone():
    official = observed(Arm("lightning", "2.5.5"), "trainer")
    assert [rank["bound"] for rank in official] == ["cuda:0", "cuda:1"]
    assert observed(Arm("lightning", "2.5.5", shim=True), "trainer") == official


def test_cpu_ranks_have_none():
    stock = observed(Arm("lightning", "2.5.4"), "cpu", simulated_cuda=False)
    assert [rank["bound"] for rank in stock] == ["None", "None"]
    assert observed(Arm("lightning", "2.5.4", shim=True), "cpu", simulated_cuda=False) == stock


PROOFS = tuple(
    Proof(
        PATCH,
        sees(lambda seen: seen["bound"] == "None"),
        case=case,
        simulated_cuda=True,
        observed=only("bound", "device", "weights") if case == "trainer" else only("bound", "device"),
    )
    for case in ("trainer", "fabric")
)
