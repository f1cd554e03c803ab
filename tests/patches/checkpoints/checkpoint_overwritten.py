"""ModelCheckpoint with a fixed file name and no monitor, of a training of three epochs. Cases: "", ``all``
(save_top_k=-1), ``monitor`` (a metric is monitored), ``named`` (the name has the step), ``resumed`` (a second training
resumes from the first one's file)."""

from _expect import bug, patched, same


def _is_kept(seen):
    first, *_, last = seen["seen"][1:]
    return first["best.ckpt"] == last["best.ckpt"] == 2 and set(last.values()) == {2, 8} and len(last) == 2


EXPECT = [
    bug(stock=lambda seen: "best-v1.ckpt" in seen["seen"][2]),
    same(["monitor", "named"], "other file names are unchanged"),
    same(
        "all",
        "file of each epoch is unchanged",
        lambda seen: seen["seen"][-1] == {"best.ckpt": 2, "best-v1.ckpt": 4, "best-v2.ckpt": 6},
    ),
    patched("resumed", "file that training was resumed from is kept", _is_kept),
]

from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

CASE = scenario.CASE


class Model(Linear):
    features = 1

    def training_step(self, batch, batch_idx):
        self.log("falling", -float(self.global_step))
        return self.layer(batch).sum()


class Names(scenario.pl.Callback):
    """Record the files after each epoch, and their contents."""

    def __init__(self):
        self.seen = []

    def on_train_epoch_start(self, trainer, *_):
        self.seen.append(files())


def files():
    return {
        path.name: torch.load(path, weights_only=False)["global_step"] for path in sorted(Path("saved").glob("*.ckpt"))
    }


def fit(epochs, resume=None):
    callback = scenario.pl.callbacks.ModelCheckpoint(
        dirpath="saved",
        filename="{step}" if CASE == "named" else "best",
        save_top_k=-1 if CASE == "all" else 1,
        monitor="falling" if CASE == "monitor" else None,
    )
    trainer = scenario.trainer(max_epochs=epochs, callbacks=[callback, names])
    trainer.fit(Model(), DataLoader(torch.ones(2, 1)), ckpt_path=resume)
    return Path(callback.best_model_path).name


if __name__ == "__main__":
    names = Names()
    best = fit(1, None) if CASE == "resumed" else fit(3)
    if CASE == "resumed":
        best = fit(4, str(Path("saved", best).absolute()))
    scenario.observe(seen=[*names.seen, files()], best=best)
