"""The number of waits for the device in a training step, because of a metric for the progress bar. Cases: ""
(prog_bar=True, and no bar), ``off`` (prog_bar=False), ``read`` (a callback reads trainer.progress_bar_metrics after
each batch and each epoch). Needs a CUDA device, simulated or real."""

from _expect import bug, same

EXPECT = [
    bug(stock=lambda seen: seen["waits"] >= 8, simulated_cuda=True, one_card=True, like="off", alone=True),
    same(
        "read",
        "displayed numbers are unchanged",
        lambda seen: len(seen["read"]) == 10 and seen["afterwards"],
        compare=lambda ranks: [{**rank, "waits": None} for rank in ranks],
        simulated_cuda=True,
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader

READ = scenario.CASE == "read"


class Waits(TorchDispatchMode):
    """Counts how often a number is read from the device."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten._local_scalar_dense.default and args[0].device.type == "cuda":
            self.count += 1
        return function(*args, **(kwargs or {}))


class Model(Linear):
    features, bias, weight = 1, False, 1.0

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).pow(2).mean()
        self.log("loss", loss, prog_bar=scenario.CASE != "off", on_step=True, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1 / 64, foreach=False)


class Reader(scenario.pl.Callback):
    def __init__(self):
        self.read = []

    def on_train_batch_end(self, trainer, *_):
        self.look(trainer)

    def on_train_epoch_end(self, trainer, *_):
        self.look(trainer)

    def look(self, trainer):
        if READ:
            self.read.append(dict(trainer.progress_bar_metrics))


if __name__ == "__main__":
    reader, model = Reader(), Model()
    trainer = scenario.trainer(accelerator="gpu", devices=1, max_epochs=2, callbacks=[reader])
    with Waits() as waits:
        trainer.fit(model, DataLoader(torch.arange(1.0, 5.0)[:, None]))
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    scenario.observe(waits=waits.count, read=reader.read, logged=logged, weight=model.layer.weight)
    if READ:
        scenario.observe(afterwards=trainer.progress_bar_metrics)
