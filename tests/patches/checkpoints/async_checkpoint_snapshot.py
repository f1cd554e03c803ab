"""AsyncCheckpointIO during training. The disk is slow: nothing is written before the third step. The checkpoint is
requested after the first step. The model has tied weights, and a module with a state dict version."""

from _expect import bug, same

EXPECT = [
    # Not compared: tied weights and module versions, which the official fix loses
    bug(stock=lambda seen: seen["saved"]["weights"] != seen["asked_for"]["weights"], compare=("asked_for", "saved")),
    same("", "official fix saves the same seed", lambda seen: seen["saved"] == seen["asked_for"], on="2.5.4"),
]

import threading

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset

plugins = scenario.pytorch("plugins")
PATH = "model.ckpt"
third_step = threading.Event()


class SlowIO(plugins.TorchCheckpointIO):
    def save_checkpoint(self, *args, **kwargs):
        assert third_step.wait(60)
        super().save_checkpoint(*args, **kwargs)


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.encode = torch.nn.Linear(2, 2)
        self.decode = torch.nn.Linear(2, 2)
        self.decode.weight = self.encode.weight
        self.norm = torch.nn.BatchNorm1d(2)

    def training_step(self, batch, batch_idx):
        if batch_idx == 2:
            third_step.set()
        return self.decode(self.norm(self.encode(batch[0]))).pow(2).mean()

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if batch_idx == 0:
            scenario.observe(asked_for=state(self.state_dict(), self.optimizers().state_dict()))
            self.trainer.save_checkpoint(PATH)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def state(weights, optimizer):
    momentum = [entry["momentum_buffer"] for entry in optimizer["state"].values()]
    return {"weights": dict(weights), "momentum": momentum}


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    loader = DataLoader(TensorDataset(torch.arange(16.0).reshape(8, 2) / 16), batch_size=2)
    scenario.trainer(max_epochs=1, plugins=[plugins.AsyncCheckpointIO(SlowIO())]).fit(Model(), loader)
    saved = torch.load(PATH, weights_only=False)
    weights = saved["state_dict"]
    scenario.observe(
        saved=state(weights, saved["optimizer_states"][0]),
        tied=weights["encode.weight"].data_ptr() == weights["decode.weight"].data_ptr(),
        norm_version=getattr(weights, "_metadata", {}).get("norm", {}).get("version"),
    )
