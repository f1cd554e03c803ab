"""Issue 19813: "No backend type associated with device type cpu" once an earlier run has logged."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

ERROR = "No backend type associated with device type cpu"
pytestmark = pytest.mark.distributed


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [
        ("lightning", "2.1.0", "lr_find"),
        ("lightning", "2.3.3", "lr_find"),
        ("lightning", "2.3.3", "fit_twice"),
        ("pytorch-lightning", "2.2.5", "lr_find"),
    ],
)
def test_second_run_trains(distribution, version, case):
    stock = run("logged_metrics_device", Arm(distribution, version), case, simulated_cuda=True)
    assert not stock.ok, stock
    assert ERROR in stock.output, stock

    shim = run("logged_metrics_device", Arm(distribution, version, shim=True), case, simulated_cuda=True)
    assert shim.ok, shim
    official = run("logged_metrics_device", Arm(distribution, "2.4.0"), case, simulated_cuda=True)
    assert official.ok, official
    assert [o["device"] for o in shim.observations] == ["cuda:0", "cuda:1"]
    assert shim.observations == official.observations, (shim, official)


def test_release_before_the_bug_is_left_alone():
    arm = Arm("pytorch-lightning", "2.0.9", shim=True)
    shim = run("logged_metrics_device", arm, "lr_find", simulated_cuda=True, toggle="logged-metrics-device")
    assert shim.ok, shim
    assert "fix" not in shim.output, shim


def test_excluded_patch_leaves_the_bug():
    arm = Arm("lightning", "2.3.3", shim=True)
    excluded = run("logged_metrics_device", arm, "fit_twice", simulated_cuda=True, toggle="-19813")
    assert ERROR in excluded.output, excluded


PROOFS = (
    Proof(
        "logged-metrics-device",
        ends_with("No backend type associated with device type cpu"),
        case="lr_find",
        simulated_cuda=True,
        one_card=True,
    ),
    Proof(
        "logged-metrics-device",
        ends_with("No backend type associated with device type cpu"),
        case="fit_twice",
        simulated_cuda=True,
        one_card=True,
    ),
)
