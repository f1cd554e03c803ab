"""An optimizer that calls the closure under torch.no_grad(). Case ``own``: the model overrides backward, which needs no
gradients."""

from _expect import bug, same, same_calls

EXPECT = [
    bug(stock="element 0 of tensors does not require grad"),
    same("own", "custom backward without gradients works", {"with_gradients": False}, on="2.0.0"),
    same_calls("callers: properties", "overridden Trainer properties are not read", on="2.0.6"),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader


class Optimizer(torch.optim.SGD):
    @torch.no_grad()
    def step(self, closure=None):
        loss = closure()
        super().step()
        return loss


class Model(Linear):
    features = 1

    def training_step(self, batch, batch_idx):
        self.with_gradients = torch.is_grad_enabled()
        return self.layer(batch).pow(2).mean()

    def configure_optimizers(self):
        return Optimizer(self.parameters(), lr=0.01)


class Own(Model):
    def backward(self, loss):
        for parameter in self.parameters():
            parameter.grad = loss * torch.ones_like(parameter)


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Own() if scenario.CASE == "own" else Model()
    trainer = scenario.trainer(max_epochs=2)
    with scenario.observing_errors():
        trainer.fit(model, DataLoader(torch.arange(4.0).reshape(4, 1), batch_size=1))
    scenario.observe(weight=model.layer.weight, bias=model.layer.bias)
    if scenario.CASE == "own":
        scenario.observe(with_gradients=model.with_gradients)
