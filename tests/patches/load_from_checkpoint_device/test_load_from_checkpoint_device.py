import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run


def device(version, case="", shim=False):
    variant = Variant("pytorch-lightning", version, shim)
    result = run("load_from_checkpoint_device", variant, case, simulated_cuda=True)
    assert result.ok, result
    seen = result.observations[0]
    assert seen["parameters"] is None or set(seen["parameters"]) == {seen["device"]}
    return seen["device"]


@pytest.mark.parametrize(("case", "where"), [("cpu", "cpu"), ("none", "cpu"), ("data", None)])
def test_other_values_are_unchanged(case, where):
    assert device("2.0.1", case) == device("2.0.1", case, shim=True) == where


SHOWS = sees(lambda seen: seen["device"] == "cpu")
PROOFS = proofs("load-from-checkpoint-device", SHOWS, "", "function", simulated_cuda=True, one_card=True)
