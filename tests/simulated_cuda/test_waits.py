"""Issues 21232, 21487 and PR 17334: waits for the GPU in a training step, on stock and with the patches.

The patches are the default set and progress-bar-without-wait. ``lightning_patches/known/coverage.txt`` lists the
remaining waits.
"""

import pytest

from tests.support.variants import Variant, run

STEPS = 10
TOGGLE = "default,progress-bar-without-wait"


def waits(version, case, shim=False):
    variant = Variant("pytorch-lightning", version, shim)
    result = run("gpu_waits", variant, case, simulated_cuda=True, toggle=TOGGLE if shim else None, timeout=300)
    assert result.ok and result.observations, result
    return result.observations


@pytest.mark.parametrize("shim", [False, True], ids=["stock", "shim"])
@pytest.mark.parametrize("version", ["2.0.9", "2.1.0", "2.6.6"])
def test_patched_step_on_one_device_causes_fewer_waits(version, shim):
    """Below 2.1.0 a logged CPU tensor is moved; on every release a number becomes a GPU tensor."""
    (found,) = waits(version, "alone", shim)
    shown, cpu = found.pop("shown"), found.pop("tensor of the CPU")
    assert shown == ({} if shim else {"read": STEPS})
    assert found.pop("ten") == ({} if shim else {"read": 10 * STEPS})
    assert cpu == ({"copied": STEPS} if version == "2.0.9" else {})
    assert found.pop("number") == {"made": STEPS}
    assert found == {"clipped": {}, "nothing": {}, "tensor": {}, "largest": {}}


@pytest.mark.distributed
@pytest.mark.parametrize("version", ["2.5.1", "2.5.2", "2.6.6"])
def test_step_on_two_devices_waits_as_on_stock(version):
    """From 2.5.2 on, each step broadcasts a flag and reads it. The patches keep it: it ends ranks that diverge."""
    stock, shim = waits(version, "ranks"), waits(version, "ranks", shim=True)
    each_step = {} if version == "2.5.1" else {"made": STEPS, "broadcast": STEPS, "read": STEPS}
    assert [rank["nothing"] for rank in stock] == [each_step] * 2
    assert [rank["nothing"] for rank in shim] == [each_step] * 2
