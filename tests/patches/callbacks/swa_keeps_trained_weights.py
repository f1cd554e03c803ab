"""After PR 21396: a run with ``max_steps`` ends before StochasticWeightAveraging begins. CASE "without": the same run
without the callback."""

from _expect import bug, same

EXPECT = [
    bug(stock=lambda seen: seen["untrained"], like="without", compare="weight"),
    # The scenario of the earlier bug, whose run continues after the start of averaging.
    same("", "average is unchanged", lambda seen: seen["averaged"], program="swa_infinite_epochs"),
]

import _scenario as scenario
import torch
from _model import Linear, mean_square
from torch.utils.data import DataLoader

SWA = scenario.pl.callbacks.StochasticWeightAveraging


class Model(Linear):
    loss = staticmethod(mean_square)


if __name__ == "__main__":
    scenario.pl.seed_everything(5)
    model = Model()
    initial = model.layer.weight.detach().clone()
    callbacks = [] if scenario.CASE == "without" else [SWA(swa_lrs=0.05, swa_epoch_start=10)]
    scenario.trainer(max_steps=8, callbacks=callbacks).fit(model, DataLoader(torch.rand(8, 2), batch_size=4))
    scenario.observe(untrained=torch.equal(model.layer.weight, initial), weight=model.layer.weight)
