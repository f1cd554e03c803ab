"""A model whose hyperparameters contain an object of a user class, and the run's checkpoints (torch 2.6). Cases:
``best`` (``test(ckpt_path="best")``), ``last`` (a second Trainer resumes), ``load`` (``load_from_checkpoint``), ``ddp``
(``best``, on two CPU ranks), ``large`` (of 1 MB), ``exchanged`` (another file was put there, which calls a function),
``tampered`` (one byte of the weights was changed), ``copied`` (the run's own file, copied elsewhere), ``strict`` (the
script says weights_only=True), ``plain`` (no object in it)."""

import os
import shutil
from pathlib import Path

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader

OUT = Path(os.environ.get("SCENARIO_OUT", "."))
CASE = scenario.CASE


class Options:
    width = 300 if CASE in ("large", "tampered") else 3


class Called:
    """The object in a hostile file."""

    def __reduce__(self):
        return os.mkdir, (str(OUT / "called"),)


class Model(Module):
    def __init__(self, options=None):
        super().__init__()
        self.save_hyperparameters()
        width = Options.width
        self.layer = torch.nn.Linear(width, width * 3)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def test_step(self, batch, batch_idx):
        self.log("out", self.layer(batch).sum())


def trainer(epochs):
    callback = scenario.pl.callbacks.ModelCheckpoint(OUT / "checkpoints", save_last=True)
    options = {"devices": 2, "strategy": "ddp"} if CASE == "ddp" else {"devices": 1}
    return scenario.trainer(max_epochs=epochs, callbacks=callback, **options)


if __name__ == "__main__":
    torch.manual_seed(1)
    data = DataLoader(torch.ones(4, Options.width), batch_size=2)
    first = trainer(1)
    model = Model(None if CASE == "plain" else Options())
    first.fit(model, data)
    best = Path(first.checkpoint_callback.best_model_path)
    said = {}
    if CASE == "exchanged":
        torch.save({"state_dict": {}, "hyper_parameters": Called()}, best)
    elif CASE == "tampered":
        content = bytearray(best.read_bytes())
        content[len(content) // 2] ^= 1
        best.write_bytes(content)
    elif CASE == "copied":
        best = shutil.copy(best, OUT / "copy.ckpt")
    elif CASE == "strict":
        said = {"weights_only": True}
    try:
        with scenario.observing_errors(), scenario.observing_warnings():
            if CASE in ("load", "exchanged", "tampered", "copied", "strict"):
                loaded = Model.load_from_checkpoint(best, **said)
                scenario.observe(
                    loaded=loaded.hparams.options.width, same=loaded.layer.weight.equal(model.layer.weight)
                )
            elif CASE == "last":
                second = trainer(2)
                second.fit(Model(Options()), data, ckpt_path=str(best.with_name("last.ckpt")))
                scenario.observe(steps=second.global_step)
            else:
                scenario.observe(tested=first.test(model, data, ckpt_path="best", verbose=False))
    finally:
        scenario.observe(called=(OUT / "called").exists())
