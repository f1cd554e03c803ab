"""The learning rate finder raises an error if training_step skips a batch."""

from _expect import bug, same

EXPECT = [
    bug(stock="KeyError: 'loss'", patched={"skipped": [2]}),
    same("all", "search without skipped batches is unchanged", {"skipped": []}),
]

import math

import _scenario as scenario


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.lr = 0.1

    def training_step(self, batch, batch_idx):
        return None if batch_idx == 2 and scenario.CASE != "all" else super().training_step(batch, batch_idx)


if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    trainer = scenario.trainer(max_epochs=1, limit_val_batches=0)
    tuner = scenario.tuner(trainer)
    with scenario.observing_errors():
        found = tuner.lr_find(Model(), num_training=6, early_stop_threshold=None, update_attr=False)
    losses = found.results["loss"]
    scenario.observe(
        skipped=[index for index, loss in enumerate(losses) if math.isnan(loss)],
        losses=[loss for loss in losses if not math.isnan(loss)],
        rates=found.results["lr"],
    )
