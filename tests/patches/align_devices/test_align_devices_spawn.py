import importlib.util

import pytest

from tests.support.variants import Variant, run

NEWEST = ("lightning", "2.6.6")


@pytest.mark.distributed
@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="needs accelerate (extra `test`)")
def test_each_rank_trains_like_a_model_without_hooks():
    stock = run("align_devices_spawn", Variant(*NEWEST), "ddp_spawn", simulated_cuda=True, fresh=True)
    assert not stock.ok and "Expected all tensors to be on the same device" in stock.output, stock
    reference = run("align_devices_spawn", Variant(*NEWEST), "ddp_spawn_without_hooks", simulated_cuda=True, fresh=True)
    patched = run("align_devices_spawn", Variant(*NEWEST, shim=True), "ddp_spawn", simulated_cuda=True, fresh=True)
    assert reference.ok and patched.ok, (reference, patched)
    assert patched.observations == reference.observations
    assert [len(rank["losses"]) for rank in patched.observations] == [4, 4]
