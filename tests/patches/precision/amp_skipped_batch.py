"""training_step returns None for some batches, in 16-mixed precision, here with a gradient scaler on the CPU. Cases:
``first`` (from the first batch on), ``row`` (two in a row), ``none_skipped``."""

from _expect import bug, same

AGAIN = "unscale_() has already been called on this optimizer since the last update()"
TOO_EARLY = "Attempted unscale_ but _scale is None"

EXPECT = [
    bug("first", stock=TOO_EARLY),
    bug("row", stock=AGAIN),
    same("none_skipped", "training without skips is unchanged"),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

SKIPPED = {"first": (0, 1), "row": (1, 2), "none_skipped": ()}[scenario.CASE]


class Model(Linear):
    features = 4

    def __init__(self):
        super().__init__()
        self.before_step = []

    def training_step(self, batch, batch_idx):
        return None if batch_idx in SKIPPED else self.layer(batch).float().pow(2).mean()

    def on_before_optimizer_step(self, optimizer):
        self.before_step.append(self.layer.weight.grad is not None)


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    plugin = scenario.pl.plugins.MixedPrecisionPlugin("16-mixed", "cpu", scaler=torch.amp.GradScaler("cpu"))
    trainer = scenario.trainer(max_epochs=2, plugins=[plugin], gradient_clip_val=1.0)
    with scenario.observing_errors():
        trainer.fit(model, DataLoader(torch.arange(16.0).reshape(4, 4) / 16, batch_size=1))
    scenario.observe(
        weights=list(model.parameters()),
        steps=trainer.global_step,
        before_step=model.before_step,
        scale=plugin.scaler.get_scale(),
    )
