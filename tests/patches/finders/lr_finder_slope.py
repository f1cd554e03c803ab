"""Which learning rate the finder suggests. Cases: ``exponential``, ``linear`` (the finder's modes), ``few`` (too few
losses for a suggestion)."""

from _expect import bug, patched

EXPECT = [
    # Not compared: the losses, which show that the searches were the same up to rounding
    bug(
        "exponential",
        stock=lambda seen: seen["suggested"] != seen["steepest"],
        patched=lambda seen: seen["suggested"] == seen["steepest"],
        compare="suggested",
    ),
    patched("few", "suggestion is None for too few losses", {"suggested": None}, alone=True),
]

import _scenario as scenario
import torch
from _model import Linear, mean_square
from torch.utils.data import DataLoader


class Model(Linear):
    loss = staticmethod(mean_square)
    lr = 1e-3


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    trainer = scenario.trainer(max_epochs=3)
    finder = scenario.tuner(trainer).lr_find(
        model,
        DataLoader(torch.arange(80.0).reshape(40, 2) / 80, batch_size=1),
        mode="linear" if scenario.CASE == "linear" else "exponential",
        num_training=11 if scenario.CASE == "few" else 40,
        early_stop_threshold=None,
        update_attr=False,
    )
    rates, losses = finder.results["lr"], finder.results["loss"]
    suggested = finder.suggestion()
    steepest = None
    if suggested is not None:
        slopes = torch.gradient(torch.tensor(losses[10:-1]), spacing=[torch.tensor(rates[10:-1])])[0]
        steepest = rates[10 + int(slopes.argmin())]
    scenario.observe(suggested=suggested, steepest=steepest, losses=losses)
