"""A run with StochasticWeightAveraging is resumed after its last epoch. Cases: ``plain``, ``within`` (resumed before
the last epoch), ``batch norm``, ``subclass`` (it ends the run itself)."""

from _expect import bug, same

EXPECT = [
    bug("plain", stock={"is_whole": False}, patched={"is_whole": True}, like="within"),
    same(["within", "batch norm", "subclass"], "run that keeps its weights is unchanged"),
]

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader

callbacks = scenario.pytorch("callbacks")
CASE = scenario.CASE


class WithoutTransfer(callbacks.StochasticWeightAveraging):
    def on_train_end(self, trainer, pl_module):
        pass


class Model(Module):
    def __init__(self):
        super().__init__()
        norm = torch.nn.BatchNorm1d(2) if CASE == "batch norm" else torch.nn.Identity()
        self.layers = torch.nn.Sequential(norm, torch.nn.Linear(2, 1))

    def training_step(self, batch, batch_idx):
        return (self.layers(batch) - 1).pow(2).mean()


def fit(**options):
    scenario.pl.seed_everything(5)
    model = Model()
    swa = (WithoutTransfer if CASE == "subclass" else callbacks.StochasticWeightAveraging)(0.05, swa_epoch_start=2)
    saver = callbacks.ModelCheckpoint(".", "{epoch}", save_top_k=-1, every_n_epochs=1, save_on_train_epoch_end=True)
    data = DataLoader(torch.rand(8, 2), batch_size=4)
    scenario.trainer(accelerator="cpu", max_epochs=4, callbacks=[swa, saver]).fit(model, data, **options)
    return [parameter.tolist() for parameter in model.parameters()]


if __name__ == "__main__":
    whole = fit()
    last = {"within": 2, "batch norm": 4}.get(CASE, 3)
    resumed = fit(ckpt_path=f"epoch={last}.ckpt")
    scenario.observe(weights=resumed, is_whole=resumed == whole)
