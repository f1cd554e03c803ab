"""The values that ``self.log`` moves although all are on the right device. Counts calls of ``Tensor.to``. Cases:
``cpu``, ``gpu`` (needs a CUDA device, simulated or real)."""

import _scenario as scenario
import torch
import torchmetrics
from _model import Linear
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader, TensorDataset


class CountMoves(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.moves = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.moves += func is torch.Tensor.to
        return func(*args, **(kwargs or {}))


class Model(Linear):
    features = 1

    def __init__(self):
        super().__init__()
        self.average = torchmetrics.MeanMetric()
        self.moves = []

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).pow(2).mean()
        self.average.update(loss.detach())
        with CountMoves() as count:
            self.log("loss", loss, on_step=True, on_epoch=True)
            self.log("largest", loss, on_step=False, on_epoch=True, reduce_fx="max")
            self.log("number", 1.5 * batch_idx)
            self.log("average", self.average, on_step=False, on_epoch=True)
        if batch_idx > 0:  # the first step of an epoch registers, resets or fetches the metrics
            self.moves.append(count.moves)
        return loss


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    loader = DataLoader(TensorDataset(torch.arange(4.0).reshape(4, 1)), batch_size=1)
    trainer = scenario.trainer(accelerator=scenario.CASE, devices=1, max_epochs=2)
    for fit in ("first", "second"):
        trainer.fit(model, loader)
        scenario.observe(**{f"{fit} fit": {"moves": model.moves, "metrics": dict(trainer.callback_metrics)}})
        model.moves = []
        trainer.fit_loop.max_epochs = 4
