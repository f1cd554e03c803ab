"""Importing Lightning or predicting imports torch._dynamo, even in processes that neither train nor compile. Cases: ""
imports Lightning, predicts, trains and compiles; ``by-hand`` prevents the import of torch._dynamo by stand-ins in
sys.modules until it has predicted."""

from _expect import bug

EXPECT = [
    bug(
        stock=lambda seen: seen["loaded"][1],
        patched={"loaded": [False, False]},
        like="by-hand",
        compare=("loaded", "predicted", "loss", "weights"),
        fresh=True,
    )
]

import sys
import types

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

is_stand_in = scenario.CASE == "by-hand"
if is_stand_in:
    from torch._compile import _disable_dynamo

    stand_in = types.ModuleType("torch._dynamo")
    stand_in.OptimizedModule = type("OptimizedModule", (), {})
    stand_in.disable = lambda function, recursive, **_: _disable_dynamo(function, recursive)
    sys.modules["torch._dynamo"] = stand_in

from _model import Module  # imports Lightning


class Model(Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    def predict_step(self, batch, batch_idx):
        return self.net(batch)

    def training_step(self, batch, batch_idx):
        loss = self.net(batch).pow(2).mean()
        self.log("loss", loss, on_epoch=True)
        return loss


if __name__ == "__main__":
    loaded = ["torch._dynamo" in sys.modules and not is_stand_in]
    scenario.pl.seed_everything(3)
    model = Model()
    batches = DataLoader([torch.arange(n, n + 4.0).cos() for n in range(4)], batch_size=2)
    predicted = scenario.trainer().predict(model, batches)
    if is_stand_in:
        del sys.modules["torch._dynamo"]
        vars(torch).pop("_dynamo", None)
    loaded.append("torch._dynamo" in sys.modules)
    trainer = scenario.trainer(max_epochs=2)
    trainer.fit(model, batches)
    loss = trainer.callback_metrics["loss"]
    scenario.observe(loaded=loaded, predicted=predicted, loss=loss, weights=list(model.parameters()))
