"""Manual optimization under ``DDPStrategy(static_graph=True)``, in two fits of one Trainer on two CPU ranks. Cases:
``one`` (one backward in each step), ``accumulated`` (two, of which only the second is synchronized), ``two`` (two that
are synchronized, as in a GAN), ``sparse`` (one, with a sparse gradient). With ``plain_`` before it: no static_graph."""

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
