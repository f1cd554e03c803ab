"""PR 21586: under FSDP mixed precision begins with half-precision parameters, and rounds small steps away."""

from functools import cache

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

HALF = {"fabric": "torch.bfloat16", "trainer": "torch.float16"}


@cache
def observed(arm, case):
    result = run("fsdp_initial_precision", arm, case, simulated_cuda=True)
    assert result.ok and len(result.observations) == 1, result
    return result.observations[0]


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("lightning", "2.6.0", "fabric"), ("lightning", "2.6.1", "trainer"), ("pytorch-lightning", "2.6.1", "fabric")],
)
def test_parameters_have_full_precision(distribution, version, case):
    stock = observed(Arm(distribution, version), case)
    assert stock["dtypes"] == [HALF[case]] * 2
    shim = observed(Arm(distribution, version, shim=True), case)
    assert shim["dtypes"] == ["torch.float32"] * 2 and shim["values"] != stock["values"]
    assert shim == observed(Arm(distribution, "2.6.4"), case)


def test_small_steps_are_not_rounded_away():
    stock = observed(Arm("lightning", "2.6.1"), "trainer")
    assert stock["trained"] == stock["values"]
    shim = observed(Arm("lightning", "2.6.1", shim=True), "trainer")
    assert all(a != b for a, b in zip(sum(shim["trained"], []), sum(shim["values"], [])))


def test_true_half_precision_stays_half():
    stock = observed(Arm("lightning", "2.6.1"), "true")
    assert stock["dtypes"] == ["torch.bfloat16"] * 2
    assert observed(Arm("lightning", "2.6.1", shim=True), "true") == stock


def test_first_fixed_release_is_left_alone():
    fixed = observed(Arm("lightning", "2.6.4"), "fabric")
    assert observed(Arm("lightning", "2.6.4", shim=True), "fabric") == fixed


PROOFS = tuple(
    Proof(
        "fsdp-initial-precision",
        sees(lambda seen: "torch.float32" not in seen["dtypes"]),
        case=case,
        since="2.1.0",
        simulated_cuda=True,
        one_card=True,
    )
    for case in HALF
)
