import sys
from functools import cache
from typing import Callable

import pytest

from tests.differential.trial import difference
from tests.support.programs import Program
from tests.support.variants import Result, Variant, environment_of, execute

PROGRAM = Program("synced-mean-batch-sizes", "2.6.6")


@cache
def means(distribution, version, case="", shim=False):
    """Return the logged values, which are equal in both ranks."""
    result = PROGRAM.run(case, version, shim=shim, distribution=distribution)
    assert result.ok and result.observations[0] == result.observations[1], result
    return {name: float.fromhex(value) for name, value in result.observations[0].items()}


def test_mean_equals_torchmetrics():
    shim = means("lightning", "2.2.5", "sizes", shim=True)
    assert shim == pytest.approx(means("lightning", "2.2.5", "metric-sizes"))
    assert means("lightning", "2.2.5", "sizes")["ones_mean"] == 9 / 8


def test_equal_batch_sizes_are_unchanged():
    assert means("lightning", "2.6.6", "equal") == means("lightning", "2.6.6", "equal", shim=True)


@pytest.mark.distributed
def test_custom_reduce_gets_the_arguments_of_stock():
    assert not difference("synced", "2.6.6", "synced-mean-batch-sizes")


COUNTED = """
import lightning_patches
import pytorch_lightning as pl
from pytorch_lightning.demos.boring_classes import BoringModel
from torch.utils._python_dispatch import TorchDispatchMode


class Counted(TorchDispatchMode):
    moved = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.moved += "_to_copy" in str(func)
        return func(*args, **(kwargs or {}))


class Model(BoringModel):
    def validation_step(self, batch, batch_idx):
        self.log("ones", 1.0)


with Counted() as counted:
    pl.Trainer(accelerator="cpu", max_steps=2, logger=False, enable_checkpointing=False).fit(Model())
print("copies", counted.moved)
"""


def test_metric_without_sync_costs_no_operation(tmp_path):
    seen = []
    for toggle in ("off", "synced-mean-batch-sizes"):
        variables = environment_of(Variant("pytorch-lightning", "2.6.6", shim=True), toggle=toggle)
        status, output = execute([sys.executable, "-c", COUNTED], variables, 120, cwd=str(tmp_path))
        assert status == 0 and "copies " in output, output
        seen.append(output.rpartition("copies ")[2])
    assert seen[0] == seen[1]


def _logged(ones: float, numbers: float) -> Callable[[Result], bool]:
    """Return a check that both ranks logged these means."""
    expected = pytest.approx([ones, numbers])
    return lambda result: (
        len(result.observations) == 2
        and all(
            [float.fromhex(rank["ones_mean"]), float.fromhex(rank["numbers_mean"])] == expected
            for rank in result.observations
        )
    )


PROOFS = PROGRAM.proofs(_logged(1.25, 1.0), recommended="metric", right=_logged(1.0, 0.8))
