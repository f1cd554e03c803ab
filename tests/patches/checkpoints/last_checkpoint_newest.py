"""From 2.6.0 on, last.ckpt stays at the best epoch if ModelCheckpoint has a monitor. Cases: ``worse`` (the metric gets
worse), ``second`` (a second callback saves last.ckpt), ``validation`` (saved after the validation), ``better``,
``link``, ``subclass``, ``every`` (every second epoch), ``resumed`` (from an earlier checkpoint, in the same
directory)."""

from _expect import bug, fixed, same

EXPECT = [
    bug(["worse", "validation"], stock={"last": 2}, patched={"last": 10}, like="second", compare="last"),
    same(["better", "link", "subclass", "second"], "other checkpoints are unchanged", alone=True),
    fixed(
        "every",
        "last checkpoint is written when the other is not due",
        stock={"last": 4},
        patched={"last": 8},
        alone=True,
    ),
]

import os

import _scenario as scenario
import torch

Saving = scenario.pl.callbacks.ModelCheckpoint
CASE = scenario.CASE
OUT = "checkpoints"


class Own(Saving):
    pass


class Model(scenario.BoringModel):
    def validation_step(self, batch, batch_idx):
        self.log("metric", torch.tensor(float(self.current_epoch) * (-1 if CASE == "better" else 1)))


def trainer(epochs):
    last = "link" if CASE == "link" else CASE != "second"
    options = {"every_n_epochs": 2} if CASE == "every" else {}
    options.update({"save_on_train_epoch_end": False} if CASE == "validation" else {})
    kind = Own if CASE == "subclass" else Saving
    calls = [kind(OUT, "{epoch}", monitor="metric", save_last=last, **options)]
    if CASE == "second":
        calls.append(Saving(OUT, save_top_k=0, save_last=True))
    return scenario.trainer(
        max_epochs=epochs, limit_train_batches=2, limit_val_batches=1, num_sanity_val_steps=0, callbacks=calls
    )


if __name__ == "__main__":
    with scenario.observing_warnings():
        if CASE == "resumed":
            trainer(1).fit(Model())
            trainer(2).fit(Model(), ckpt_path=os.path.join(OUT, "epoch=0.ckpt"))
        else:
            trainer(5).fit(Model())
    files = {name: torch.load(os.path.join(OUT, name), weights_only=False)["global_step"] for name in os.listdir(OUT)}
    scenario.observe(files=files, last=files["last.ckpt"])
