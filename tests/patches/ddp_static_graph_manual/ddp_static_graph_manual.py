"""Manual optimization under ``DDPStrategy(static_graph=True)``, in two fits of one Trainer on two CPU ranks. Cases:
``static``, ``plain`` (the same without static_graph), ``no_sync`` (static_graph, and each step adds up two batches of
which only the second is synchronized; torch cannot do that), ``two`` (two backwards in each step, for which torch
raises)."""

import contextlib

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader, TensorDataset


class Model(Module):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
        self.gradients = []

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        for skips in (True, False) if scenario.CASE == "no_sync" else (False,):
            if scenario.CASE == "two":
                self.manual_backward(self.layers[2](batch[0].new_ones(1, 3)).mean())
            with self.trainer.model.no_sync() if skips else contextlib.nullcontext():
                self.manual_backward(self.layers(batch[0] + skips).pow(2).mean())
        self.gradients.append([parameter.grad.clone() for parameter in self.parameters()])
        optimizer.step()


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    loader = DataLoader(TensorDataset(torch.arange(24.0).reshape(12, 2) / 24), batch_size=2)
    strategy = scenario.pl.strategies.DDPStrategy(static_graph=scenario.CASE != "plain")
    trainer = scenario.trainer(devices=2, strategy=strategy, max_epochs=1)
    with scenario.observing_warnings():
        for fit in ("first", "second"):
            trainer.fit(model, loader)
            scenario.observe(**{f"{fit} fit": {"gradients": model.gradients, "weights": list(model.parameters())}})
            model.gradients = []
            trainer.fit_loop.max_epochs = 2
