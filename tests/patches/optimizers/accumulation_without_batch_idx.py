"""Gradients are not accumulated if training_step has no argument batch_idx. Cases: ``without``, ``with`` (it has that
argument), ``iterator`` (it takes the dataloader_iter)."""

from _expect import bug, fixed


def _first_gradient(value):
    return lambda seen: seen["gradients"][0] == [value.hex()]


EXPECT = [
    bug(
        "without",
        stock=lambda seen: seen["indices"] == [0] * 6 and _first_gradient(3 / 3)(seen),
        patched=_first_gradient((1 + 2 + 3) / 3),
    ),
    # 2.1.0 reads the index too early, so its windows begin one batch early. With the patch they are complete.
    fixed(
        "iterator",
        "step with an iterator accumulates whole windows",
        stock={"indices": [0] * 6},
        like="with",
        alone=True,
    ),
]

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader


class Base(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1, bias=False)
        self.gradients, self.indices = [], []

    def on_before_optimizer_step(self, optimizer):
        self.gradients.append(self.layer.weight.grad.clone())

    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):
        self.indices.append(batch_idx)
        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)


class Without(Base):
    def training_step(self, batch):
        return self.layer(batch).mean()


class With(Base):
    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()


class Iterating(Base):
    def training_step(self, dataloader_iter):
        batch = next(dataloader_iter)
        batch = batch[0] if isinstance(batch, tuple) else batch  # from 2.1.0 on, its index comes with it
        return self.layer(batch).mean()


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = {"without": Without, "with": With, "iterator": Iterating}[scenario.CASE]()
    trainer = scenario.trainer(max_epochs=2, accumulate_grad_batches=3)
    trainer.fit(model, DataLoader(torch.arange(1.0, 9.0).reshape(8, 1), batch_size=1))
    scenario.observe(gradients=model.gradients, indices=model.indices, weight=model.layer.weight)
