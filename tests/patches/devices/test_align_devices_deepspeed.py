import importlib.util
import os
from pathlib import Path

import pytest

from tests.support.variants import Variant, run

BUG = "Expected all tensors to be on the same device"
PACKAGES = ("accelerate", "deepspeed")
pytestmark = [
    pytest.mark.distributed,
    pytest.mark.skipif(
        any(importlib.util.find_spec(package) is None for package in PACKAGES), reason="needs accelerate and deepspeed"
    ),
]


def variant(release, case, shim, stage):
    specs = map(importlib.util.find_spec, PACKAGES)
    folders = dict.fromkeys(str(Path(spec.origin).parents[1]) for spec in specs)
    environment = {"SCENARIO_PACKAGES": os.pathsep.join(folders), "ZERO_STAGE": str(stage)}
    return run(
        "align_devices_deepspeed", Variant(*release, shim=shim), case, True, environment=environment, timeout=300
    )


@pytest.mark.parametrize(
    ("release", "case", "stage"),
    [
        (("lightning", "2.6.6"), "trainer", 0),
        (("lightning", "2.6.6"), "trainer", 2),
        (("lightning", "2.6.6"), "trainer", 3),
        (("pytorch-lightning", "2.0.9"), "trainer", 2),
        (("lightning", "2.6.6"), "fabric", 2),
        (("pytorch-lightning", "2.0.9"), "fabric", 2),
    ],
)
def test_each_rank_trains_like_a_model_without_hooks(release, case, stage):
    stock = variant(release, case, False, stage)
    assert not stock.ok and BUG in stock.output, stock
    reference = variant(release, f"{case}_without_hooks", False, stage)
    patched = variant(release, case, True, stage)
    assert reference.ok and patched.ok, (reference, patched)
    assert patched.observations == reference.observations
    assert [len(rank["losses"]) for rank in patched.observations] == [4, 4]
