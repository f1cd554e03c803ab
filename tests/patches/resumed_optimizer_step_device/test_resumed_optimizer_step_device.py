import pytest

from tests.differential.trial import difference
from tests.support.programs import Program, sees

PARAMETERS = 2

PROGRAM = Program("resumed-optimizer-step-device", "2.3.3", options={"simulated_cuda": True})


@pytest.mark.parametrize("version", ["2.0.0", "2.3.3"])
def test_step_count_stays_on_the_cpu(version):
    stock, shim = (result.facts for result in PROGRAM.both("adam", version))
    assert all(waits >= PARAMETERS for waits in stock["waits"]) and shim["waits"] == [0, 0, 0]
    assert shim["weights"] == stock["weights"] and devices(shim) == {"cpu"}


test_step_count_of_a_fused_optimizer_moves_to_the_device = PROGRAM.unchanged(
    "capturable", "vector", check=sees(lambda seen: devices(seen) == {"cuda:0"})
)


def devices(seen):
    return {device for device, _ in seen["steps"]}


def test_optimizer_without_parameters_resumes():
    assert not difference("black_box", "2.0.0", "resumed-optimizer-step-device")


PROOFS = PROGRAM.proofs(sees(lambda seen: "cuda:0" in devices(seen)), "adam", simulated_cuda=True, one_card=True)
