"""Manual optimization under ``DDPStrategy(static_graph=True)``, in two fits of one Trainer on two CPU ranks. Cases:
``one`` (one backward in each step), ``accumulated`` (two, of which only the second is synchronized), ``two`` (two that
are synchronized, as in a GAN), ``sparse`` (one, with a sparse gradient). With ``plain_`` before it: no static_graph."""

from _expect import bug, fixed, whole_run

FITS = ("first fit", "second fit")


def in_step(observations, fit):
    first, second = (rank[fit] for rank in observations)
    return bool(first == second)


def _ranks_differ(result):
    return not result.ok or not all(in_step(result.observations, fit) for fit in FITS)


def breaks(*fits):
    return whole_run(lambda result: tuple(fit for fit in FITS if not in_step(result.observations, fit)) == fits)


EXPECT = [
    bug(["one", "accumulated", "sparse"], stock=whole_run(_ranks_differ), like="plain_{}"),
    fixed("one", "ranks stay in step in fits that stock breaks", stock=breaks(*FITS), patched=breaks(), on="2.5.6"),
    fixed("one", "ranks stay in step in fits that stock breaks", stock=breaks(FITS[1]), patched=breaks(), on="2.6.6"),
]

import contextlib

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader, TensorDataset

CASE = scenario.CASE.replace("plain_", "")


class Model(Module):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
        self.table = torch.nn.Embedding(4, 2, sparse=True).requires_grad_(CASE == "sparse")
        self.gradients = []

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        for skips in (True, False) if CASE == "accumulated" else (False,):
            if CASE == "two":
                self.manual_backward(self.layers[2](batch[0].new_ones(1, 3)).mean())
            with self.trainer.model.no_sync() if skips else contextlib.nullcontext():
                entries = self.table(batch[0].argmax(1) + self.global_rank)
                self.manual_backward(self.layers(batch[0] + skips + entries).pow(2).mean())
        self.gradients.append([p.grad.to_dense().tolist() for p in self.parameters() if p.requires_grad])
        optimizer.step()


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    loader = DataLoader(TensorDataset(torch.arange(24.0).reshape(12, 2) / 24), batch_size=2)
    strategy = scenario.pl.strategies.DDPStrategy(static_graph=CASE == scenario.CASE)
    trainer = scenario.trainer(devices=2, strategy=strategy, max_epochs=1)
    for fit in ("first", "second"):
        trainer.fit(model, loader)
        scenario.observe(**{f"{fit} fit": {"gradients": model.gradients, "weights": list(model.parameters())}})
        model.gradients = []
        trainer.fit_loop.max_epochs = 2
