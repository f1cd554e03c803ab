import sys

from tests.support.run import execute
from tests.support.variants import Variant, environment_of

NAME = "autocast-after-no-grad"


VERDICTS = """
import sys
import lightning_patches
from lightning_patches.patches import find
from lightning_patches.patches.precision import _autocast_cache as autocast_cache

name = "autocast-after-no-grad"
def entry():
    (found,) = [e for e in lightning_patches.report() if e.patch == name and e.namespace == "pytorch_lightning"]
    return found.verdict, found.reason

early = entry()
assert "torch" not in sys.modules
import pytorch_lightning, torch
print(early, autocast_cache._found, entry(), sep="\\n")
plugin = pytorch_lightning.plugins.MixedPrecision("bf16-mixed", "cpu")
original = type(plugin).forward_context.__lightning_patches_original__
assert type(plugin.forward_context()) is type(original(plugin))
with plugin.forward_context():
    assert not autocast_cache._watched
"""


def test_verdict_reports_the_result_of_the_probe(tmp_path):
    variables = environment_of(Variant("pytorch-lightning", "2.5.4", shim=True), toggle=NAME)
    status, output = execute([sys.executable, "-c", VERDICTS], variables, 120, cwd=str(tmp_path))
    assert status == 0, output
    early, unasked, verdict = output.strip().splitlines()[-3:]
    assert "pending" in early and "acts only if a probe finds the bug in torch" in early
    assert unasked == "None", "the import of Lightning must not run the probe"
    assert "not-affected" in verdict and "not needed: a probe finds" in verdict


AT_THE_END = """
import atexit
import lightning_patches, pytorch_lightning as pl, torch

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def validation_step(self, batch, batch_idx):
        print("in", self.layer(batch).dtype)

@atexit.register
def last():
    trainer = pl.Trainer(accelerator="cpu", devices=1, logger=False, precision="bf16-mixed", enable_progress_bar=False)
    trainer.validate(Model(), torch.utils.data.DataLoader(torch.ones(2, 4)), verbose=False)
"""


def test_first_forward_at_interpreter_exit_raises_nothing(tmp_path):
    """The probe can't start a thread then."""
    variables = environment_of(Variant("pytorch-lightning", "2.5.4", shim=True), toggle=NAME)
    status, output = execute([sys.executable, "-c", AT_THE_END], variables, 120, cwd=str(tmp_path))
    assert status == 0 and output.count("in torch.bfloat16") == 2 and "Traceback" not in output, output
