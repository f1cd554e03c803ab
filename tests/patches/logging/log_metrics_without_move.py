"""The values that ``self.log`` moves although all are on the right device. Counts calls of ``Tensor.to``. Cases:
``cpu``, ``gpu`` (needs a CUDA device, simulated or real)."""

from _expect import bug, fixed, patched, same


def _moves(observations):
    """Return the metrics of each fit, and True if anything was moved for them."""
    return [{fit: [max(seen["moves"]) > 0, seen["metrics"]] for fit, seen in rank.items()} for rank in observations]


def _without_moves(observations):
    """Return the same metrics, and False."""
    return [{fit: [False, seen["metrics"]] for fit, seen in rank.items()} for rank in observations]


def moves(observations):
    """Return the moves in each step, except the first of an epoch."""
    return [move for fit in observations.values() for move in fit["moves"]]


def _metrics(observations):
    return [[fit["metrics"] for fit in rank.values()] for rank in observations]


EXPECT = [
    bug("cpu", stock=lambda seen: min(seen["first fit"]["moves"]) > 0, compare=_moves, compare_like=_without_moves),
    same(
        "lr_find",
        "metrics of an earlier search are still moved",
        simulated_cuda=True,
        program="logged_metrics_device",
        on="2.4.0",
    ),
    same(
        "fit_twice", "metrics of an earlier run are still moved", simulated_cuda=True, program="logged_metrics_device"
    ),
    fixed(
        "gpu",
        "metrics on their device are not moved",
        stock=lambda seen: min(moves(seen)) > 0,
        patched=lambda seen: max(moves(seen)) == 0,
        simulated_cuda=True,
    ),
    same("gpu", "metrics on their device are those of stock", compare=_metrics, simulated_cuda=True),
    patched(
        "gpu",
        "backport of 19814 moves no metrics",
        lambda seen: max(moves(seen)) == 0,
        simulated_cuda=True,
        toggle="default",
        on="2.3.3",
    ),
]

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
