"""Issue 19955: a resume puts Adam's step count on the GPU, and each step waits for the GPU to read it."""

from functools import cache

import pytest

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

PARAMETERS = 2


@cache
def observed(variant, case="adam"):
    result = run("resumed_optimizer_step_device", variant, case, simulated_cuda=True)
    assert result.ok and len(result.observations) == 1, result
    return result.observations[0]


def devices(seen):
    return {device for device, _ in seen["steps"]}


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.3.3")])
def test_step_count_stays_on_the_cpu(distribution, version):
    stock = observed(Variant(distribution, version))
    assert devices(stock) == {"cuda:0"} and all(waits >= PARAMETERS for waits in stock["waits"])
    shim = observed(Variant(distribution, version, shim=True))
    assert devices(shim) == {"cpu"} and shim["waits"] == [0, 0, 0]
    assert shim["weights"] == stock["weights"]
    assert shim == observed(Variant(distribution, "2.4.0"))


@pytest.mark.parametrize("case", ["capturable", "vector"])
def test_step_count_of_a_fused_optimizer_moves_to_the_device(case):
    stock = observed(Variant("lightning", "2.3.3"), case)
    assert devices(stock) == {"cuda:0"}
    assert observed(Variant("lightning", "2.3.3", shim=True), case) == stock


def test_optimizer_without_parameters_resumes():
    assert not difference("black_box", "2.0.0", "resumed-optimizer-step-device")


PROOFS = (
    Proof(
        "resumed-optimizer-step-device",
        sees(lambda seen: "cuda:0" in devices(seen)),
        case="adam",
        simulated_cuda=True,
        one_card=True,
    ),
)
