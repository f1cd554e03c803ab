"""Metrics logged in an earlier run stay on the CPU, and NCCL cannot reduce them in the next one. Cases: ``lr_find``
(Tuner.lr_find, then fit), ``fit_twice``. Needs two CUDA devices, simulated or real."""

from _expect import bug, patched, whole_run

ERROR = "No backend type associated with device type cpu"


def _on_their_devices(result):
    one_card = ["cuda:0", "cuda:0"]
    return [rank["device"] for rank in result.observations] in (["cuda:0", "cuda:1"], one_card)


EXPECT = [
    bug(
        ["lr_find", "fit_twice"], stock=ERROR, patched=whole_run(_on_their_devices), simulated_cuda=True, one_card=True
    ),
    patched("fit_twice", "excluded patch leaves the bug", ERROR, simulated_cuda=True, toggle="-19813"),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader


class Model(Linear):
    features, lr = 4, 1e-3

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).pow(2).mean()
        self.log("train_loss", loss, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.layer(batch).pow(2).mean(), sync_dist=True)


def loader():
    return DataLoader(torch.arange(64.0).reshape(16, 4) / 64, batch_size=2)


if __name__ == "__main__":
    scenario.pl.seed_everything(7)
    model = Model()
    trainer = scenario.trainer(strategy="ddp", accelerator="gpu", devices=2, max_epochs=1)
    with scenario.observing_errors():
        if scenario.CASE == "lr_find":
            tuner = scenario.tuner(trainer)
            tuner.lr_find(model, loader(), loader(), num_training=5, max_lr=1e-2)
        else:
            trainer.fit(model, loader(), loader())
            trainer.fit_loop.max_epochs = 2
        trainer.fit(model, loader(), loader())
    scenario.observe(
        metrics=dict(trainer.callback_metrics), weight=model.layer.weight, device=str(trainer.strategy.root_device)
    )
