"""PR 18488: fabric.load() leaves the optimizer that steps as it was made."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run


def observed(arm):
    result = run("fabric_optimizer_load_state", arm)
    assert result.ok and len(result.observations) == 1, result
    return result.observations[0]


def goes_on(seen):
    return (
        seen["resumed"] == seen["uninterrupted"]
        and (seen["shown"], seen["used"]) == ((0.01).hex(), (0.01).hex())
        and seen["set_later"] == (0.5).hex()
    )


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("pytorch-lightning", "2.0.8")])
def test_resumed_training_goes_on(distribution, version):
    stock = observed(Arm(distribution, version))
    assert stock["resumed"] != stock["uninterrupted"]
    assert (stock["shown"], stock["used"]) == ((0.01).hex(), (9.0).hex())
    assert goes_on(observed(Arm(distribution, version, shim=True)))


def test_first_fixed_release():
    stock = observed(Arm("pytorch-lightning", "2.0.9"))
    assert goes_on(stock)
    assert observed(Arm("pytorch-lightning", "2.0.9", shim=True)) == stock


PROOFS = (Proof("fabric-optimizer-load-state", sees(lambda seen: seen["resumed"] != seen["uninterrupted"])),)
