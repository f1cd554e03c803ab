"""StochasticWeightAveraging steps with old gradients in the epoch that updates batch norm statistics. Cases: ``norm``,
``dropped`` (the program drops the gradients), ``plain`` (a model without batch norm), ``scaler`` (a precision with a
gradient scaler)."""

from _expect import bug, fixed, same

STALE, RIGHT = {"is_average": False}, {"is_average": True}

EXPECT = [
    bug("norm", stock=STALE, patched=RIGHT, like="dropped"),
    same(["plain", "dropped"], "average without old gradients is unchanged"),
    fixed(
        "scaler", "weights are the average with a gradient scaler", stock=STALE, patched=RIGHT, on=("2.0.0", "2.6.6")
    ),
]

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader

CASE = scenario.CASE


class Model(Module):
    def __init__(self):
        super().__init__()
        norm = [] if CASE == "plain" else [torch.nn.BatchNorm1d(2)]
        self.layers = torch.nn.Sequential(*norm, torch.nn.Linear(2, 1))
        self.hooks = 0

    def training_step(self, batch, batch_idx):
        return (self.layers(batch) - 1).pow(2).mean()

    def on_train_batch_start(self, batch, batch_idx):
        if CASE == "dropped" and self.trainer.fit_loop._skip_backward:
            self.zero_grad(set_to_none=True)

    def on_before_optimizer_step(self, *args):
        self.hooks += 1


def precision():
    plugins = scenario.pytorch("plugins")
    kind = getattr(plugins, "MixedPrecision", None) or plugins.MixedPrecisionPlugin
    return kind("16-mixed", "cpu", scaler=torch.amp.GradScaler("cpu"))


if __name__ == "__main__":
    scenario.pl.seed_everything(5)
    model = Model()
    swa = scenario.pl.callbacks.StochasticWeightAveraging(0.05, swa_epoch_start=2)
    data = DataLoader(torch.rand(8, 2), batch_size=4)
    options = {"plugins": [precision()]} if CASE == "scaler" else {}
    scenario.trainer(max_epochs=4, callbacks=swa, **options).fit(model, data)
    pairs = list(zip(model.parameters(), swa._average_model.parameters()))
    scenario.observe(
        is_average=all(torch.equal(a, b) for a, b in pairs), weights=[a for a, _ in pairs], hooks=model.hooks
    )
