"""Pull request 20081: Lightning needs ``pkg_resources`` to be imported, which newer setuptools do not have. The program
first restarts in an environment without setuptools."""

from _expect import bug, fixed, patched

MESSAGE = "No module named 'pkg_resources'"

VERSIONS = ("1.5.10", "1.6.5", "1.7.7", "1.8.6", "1.9.5")

EXPECT = [
    bug(stock=MESSAGE, patched={"left_behind": [], "others_read": MESSAGE}),
    patched("", "selection by name keeps Lightning importable", {}, toggle="19813", on="2.3.3"),
    patched("", "patch for the import can be left out", MESSAGE, toggle="19813,-20081", on="2.3.3"),
    fixed(
        "",
        "lightning 1.x is imported and trains",
        stock=MESSAGE,
        patched={"steps": 4, "others_have": []},
        program="import_without_pkg_resources_1x",
        fresh=True,
        on=VERSIONS,
    ),
    patched(
        "there",
        "installed pkg_resources is used",
        {"steps": 4, "others_have": ["pkg_resources"]},
        program="import_without_pkg_resources_1x",
        fresh=True,
        on=("1.6.5", "1.9.5"),
    ),
]

import importlib
import sys

import _without_setuptools

_without_setuptools.go_there()

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    pl = scenario.pytorch()

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch, batch_idx):
            loss = self.layer(batch[0]).pow(2).mean()
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    pl.seed_everything(3)
    trainer = scenario.trainer(devices=1, max_epochs=1)
    trainer.fit(Model(), DataLoader(TensorDataset(torch.arange(4.0).reshape(4, 1)), batch_size=2))
    scenario.observe(loss=trainer.callback_metrics["loss"])
    if not pl.__version__.startswith("1.8."):  # which has no Fabric
        scenario.fabric().Fabric(accelerator="cpu")

    try:
        importlib.import_module("pkg_resources")
    except ModuleNotFoundError as error:
        scenario.observe(others_read=str(error))
    scenario.observe(left_behind=sorted(name for name in sys.modules if name.startswith("pkg_resources")))
