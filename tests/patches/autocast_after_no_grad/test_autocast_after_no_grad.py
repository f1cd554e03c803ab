import sys

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support import old_torch
from tests.support.variants import Variant, environment_of, execute, run

untrained = sees(lambda rank: rank["body_trained"] is False)
PROOFS = (
    Proof("autocast-after-no-grad", untrained, "no_grad", recommended="no_grad_by_hand", old_torch=True),
    Proof("autocast-after-no-grad", untrained, "inference_mode", recommended="inference_mode_by_hand", old_torch=True),
)
MESSAGE = "element 0 of tensors does not require grad and does not have a grad_fn"
NAME = "autocast-after-no-grad"


@pytest.fixture(name="with_old_torch")
def needs_old_torch():
    if old_torch.find().python is None:
        pytest.skip(old_torch.find().reason)


def both_variants(name, distribution, version, case, old=True):
    """The scenario of this patch, on stock and with the patch alone."""
    scenario = name.replace("-", "_")
    stock = run(scenario, Variant(distribution, version), case, old_torch=old)
    return stock, run(scenario, Variant(distribution, version, shim=True), case, toggle=name, old_torch=old)


def layers_get_their_gradients(name, distribution, version, case):
    stock, shim = both_variants(name, distribution, version, case)
    assert stock.ok and untrained(stock), stock
    assert shim.ok and shim.observations[0]["body_trained"] is True, shim
    assert shim.observations[0]["torch_as_before"] is True, "hooks were left in torch"


def nothing_changes_with_a_torch_that_is_right(name, distribution, version, case):
    stock, shim = both_variants(name, distribution, version, case, old=False)
    assert stock.ok and shim.ok, (stock, shim)
    assert stock.observations[0]["body_trained"] is True
    assert shim.observations == stock.observations


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [
        ("pytorch-lightning", "2.0.0", "decorator"),
        ("pytorch-lightning", "2.1.0", "switch"),
        ("lightning", "2.1.1", "enable_grad"),
        ("lightning", "2.2.5", "checkpoint"),
    ],
)
def test_layers_get_their_gradients(with_old_torch, distribution, version, case):
    layers_get_their_gradients(NAME, distribution, version, case)


def test_training_continues_where_stock_raises(with_old_torch):
    stock, shim = both_variants(NAME, "lightning", "2.2.5", "all")
    assert not stock.ok and MESSAGE in stock.output, stock
    assert shim.ok, shim


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [
        ("pytorch-lightning", "2.0.0", "no_grad"),
        ("pytorch-lightning", "2.2.5", "counted"),
        ("lightning", "2.5.4", "inference_mode"),
    ],
)
def test_nothing_changes_with_a_fixed_torch(distribution, version, case):
    nothing_changes_with_a_torch_that_is_right(NAME, distribution, version, case)


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
