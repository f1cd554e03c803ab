import sys

from tests.support.run import execute
from tests.support.variants import Variant, environment_of

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
