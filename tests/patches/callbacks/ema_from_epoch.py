"""EMAWeightAveraging ignores update_starting_at_epoch, and averages from the first step on. Cases: ``epoch`` (from
epoch 2 of 4), ``subclass`` (a should_update that waits), ``never`` (from epoch 9), ``without`` (no callback), ``step``
and ``both`` (update_starting_at_step, alone and with the epoch), ``plain`` (no start)."""

from _expect import bug, same

RIGHT = 0.05078125
"""The average of the last two epochs, each of whose two steps and its end count with a weight of one half."""

EXPECT = [
    bug(
        "epoch",
        stock=lambda seen: seen["weight"] != [RIGHT.hex()],
        patched={"weight": [RIGHT]},
        like="subclass",
        since="2.6.0",
        compare="weight",
    ),
    same(["subclass", "step", "both", "plain"], "other averages are unchanged", toggle="all"),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

EMA = scenario.pl.callbacks.EMAWeightAveraging
CASE = scenario.CASE


class Waiting(EMA):
    def on_train_epoch_start(self, trainer, pl_module):
        self.epoch = trainer.current_epoch

    def should_update(self, step_idx=None, epoch_idx=None):
        return self.epoch >= 2


class Model(Linear):
    loss = staticmethod(torch.mean)
    features, weight, lr = 1, 1.0, 0.125


OPTIONS = {
    "epoch": {"update_starting_at_epoch": 2},
    "never": {"update_starting_at_epoch": 9},
    "step": {"update_starting_at_step": 4},
    "both": {"update_starting_at_step": 1, "update_starting_at_epoch": 2},
}

if __name__ == "__main__":
    averaging = [(Waiting if CASE == "subclass" else EMA)(decay=0.5, **OPTIONS.get(CASE, {}))]
    model = Model()
    trainer = scenario.trainer(max_epochs=4, callbacks=[] if CASE == "without" else averaging)
    with scenario.observing_warnings():
        trainer.fit(model, DataLoader(torch.ones(2, 1)))
    scenario.observe(weight=model.layer.weight)
