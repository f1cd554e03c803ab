"""A run with max_steps is resumed where an epoch ended. Cases: ``saved`` (by ModelCheckpoint), ``middle`` (two steps
into an epoch), ``done`` and ``done-saved`` (no step is left), ``whole`` (no break), ``saved-epochs`` and ``epochs``
(max_epochs instead of max_steps)."""

from _expect import bug, fixed, same

RESUMED = [f"{epoch}.{batch}: {batch}" for epoch in (1, 2) for batch in (0, 1, 2)]


def batches(seen):
    return [line for line in seen["seen"] if ":" in line]


EXPECT = [
    *[
        bug(
            case,
            stock=lambda seen: "1.0: 0" in seen["seen"] and batches(seen) != RESUMED or "1.3: 0" in seen["seen"],
            patched=lambda seen: batches(seen) == RESUMED and (seen["steps"], seen["epoch"]) == (9, 3),
            like=recommended,
        )
        for case, recommended in (("", "epochs"), ("saved", "saved-epochs"))
    ],
    fixed(
        "",
        "resumed run equals the uninterrupted run",
        patched=lambda seen: batches(seen) == RESUMED,
        like="whole",
        on=("2.0.0", "2.6.6"),
    ),
    fixed(
        "done-saved",
        "finished run has the epoch of the uninterrupted run",
        stock={"epoch": 0},
        patched={"epoch": 1},
        on=("2.0.0", "2.6.6"),
    ),
    same(["middle", "done"], "run resumed within an epoch is unchanged", on=("2.4.0", "2.6.6")),
]

import os

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

CASE = scenario.CASE
OUT = "."


class Model(Linear):
    features, bias, weight, lr = 1, False, 0.0, 1.0

    def __init__(self):
        super().__init__()
        self.seen = []

    def training_step(self, batch, batch_idx):
        self.seen.append(f"{self.current_epoch}.{batch_idx}: {batch.item():.0f}")
        return self.layer(batch).sum()

    def on_train_epoch_start(self):
        self.seen.append(f"start {self.current_epoch}")

    def on_train_epoch_end(self):
        self.seen.append(f"end {self.current_epoch}")


def fit(steps, resume=None):
    callbacks = []
    if "saved" in CASE and resume is None:
        callbacks = [scenario.pl.callbacks.ModelCheckpoint(dirpath=OUT, filename="saved")]
    limits = {"max_epochs": -(-steps // 3)} if "epochs" in CASE else {"max_epochs": -1, "max_steps": steps}
    trainer = scenario.trainer(callbacks=callbacks, enable_checkpointing=bool(callbacks), **limits)
    model = Model()
    trainer.fit(model, DataLoader(torch.arange(3.0).view(3, 1)), ckpt_path=resume)
    return trainer, model


if __name__ == "__main__":
    if CASE == "whole":
        trainer, model = fit(9)
        seen = model.seen[5:]
    else:
        path = os.path.join(OUT, "saved.ckpt")
        trainer, _ = fit(2 if CASE == "middle" else 3)
        if "saved" not in CASE:
            trainer.save_checkpoint(path)
        trainer, model = fit(3 if "done" in CASE else 9, path)
        seen = model.seen
    scenario.observe(seen=seen, weight=model.layer.weight, steps=trainer.global_step, epoch=trainer.current_epoch)
