"""A run is resumed after the second batch of an epoch. Cases: none (a maximum is logged, which is the same if a release
trains a batch twice), ``mean``, ``metric`` (of torchmetrics); with ``whole`` the run is not interrupted; ``end``
and ``last`` (resumed after the last batch), ``once`` (logged in the first batch only)."""

from _expect import bug, fixed, same

EXPECT = [
    bug(stock={"seen": [1.0, 6.0]}, patched={"seen": [9.0, 6.0]}, like="max whole"),
    fixed(["mean", "metric"], stock={"seen": [1.0, 6.0]}, patched={"seen": [3.0, 6.0]}, like="{} whole"),
    fixed(["last, mean", "last, metric"], patched={"seen": [3.0, 6.0]}, toggle="default,exact-resume"),
    fixed("once", patched={"seen": [9.0, 6.0]}, toggle="default,exact-resume"),
    same(["max whole", "mean whole", "metric whole", "end"], "run that is right on stock is unchanged"),
]

import _scenario as scenario
import torch
import torchmetrics

CASE = scenario.CASE
LOSS = [[9.0, 1.0, 1.0, 1.0], [6.0] * 4]  # of each epoch and batch


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.mean = torchmetrics.MeanMetric()

    def training_step(self, batch, batch_idx):
        loss = torch.tensor(LOSS[self.current_epoch][batch_idx])
        self.mean.update(loss)
        value, reduce = (self.mean, "mean") if "metric" in CASE else (loss, "mean" if "mean" in CASE else "max")
        if batch_idx == 0 or CASE != "once":
            self.log("loss", value, on_step=False, on_epoch=True, reduce_fx=reduce)
        return super().training_step(batch, batch_idx)


class Seen(scenario.pl.Callback):
    def __init__(self):
        self.seen = []

    def on_train_epoch_end(self, trainer, module):
        self.seen.append(trainer.callback_metrics["loss"].item())


def fit(epochs, path=None):
    seen = Seen()
    saving = scenario.pl.callbacks.ModelCheckpoint("saved", "{step}", every_n_train_steps=2, save_top_k=-1)
    options = {"limit_train_batches": 4, "limit_val_batches": 0, "callbacks": [seen, saving]}
    scenario.trainer(accelerator="cpu", max_epochs=epochs, **options).fit(Model(), ckpt_path=path)
    return seen.seen


if __name__ == "__main__":
    if "whole" in CASE:
        seen = fit(2)
    else:
        fit(1)
        seen = fit(2, f"saved/step={4 if CASE[:4] in ('end', 'last') else 2}.ckpt")
    scenario.observe(seen=seen)
