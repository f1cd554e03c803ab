"""In a resumed run, ModelCheckpoint removes old files. Three runs continue the first one: in its directory, in another
one, and from a copy of its checkpoint. Case ``own``: runs that are not resumed, or whose ModelCheckpoint is the
program's own, with a directory for each epoch."""

from _expect import bug, same

DELETED = {
    "same_directory": ["epoch=2.ckpt"],
    "other_directory": {"old": [], "new": ["epoch=2.ckpt"]},
    "copied": {"origin": [], "elsewhere": ["copy.ckpt"], "newer": ["epoch=2.ckpt"]},
}
KEPT = {
    "same_directory": ["epoch=0.ckpt", "epoch=2.ckpt"],
    "other_directory": {"old": ["epoch=0.ckpt"], "new": ["epoch=2.ckpt"]},
    "copied": {"origin": ["epoch=0.ckpt"], "elsewhere": ["copy.ckpt"], "newer": ["epoch=2.ckpt"]},
}

EXPECT = [
    bug(stock=DELETED, patched=KEPT),
    same("own", "files in other directories are removed as on stock", on="2.0.0"),
]

import shutil
from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

ModelCheckpoint = scenario.pl.callbacks.ModelCheckpoint
OUT = Path.cwd()


class Model(Linear):
    def training_step(self, batch, batch_idx):
        self.log("score", float(self.current_epoch))
        return self.layer(batch).sum()


def fit(directory, epochs, resume=None, monitor=None):
    callback = ModelCheckpoint(
        dirpath=str(OUT / directory), filename="{epoch}", monitor=monitor, mode="max", save_top_k=1
    )
    trainer = scenario.trainer(callbacks=[callback], max_epochs=epochs)
    trainer.fit(Model(), DataLoader(torch.rand(2, 2)), ckpt_path=resume)
    return callback.best_model_path


class Own(ModelCheckpoint):
    def format_checkpoint_name(self, metrics, *args, **kwargs):
        return str(OUT / "own" / f"{len(list(OUT.rglob('*.ckpt')))}" / "a.ckpt")


class Moves(scenario.pl.Callback):
    def on_train_epoch_start(self, trainer, pl_module):
        trainer.checkpoint_callback.dirpath = str(OUT / f"moved-{trainer.current_epoch}")


def fit_own(callback, *others, resume=None):
    trainer = scenario.trainer(callbacks=[*others, callback], max_epochs=3)
    trainer.fit(Model(), DataLoader(torch.rand(2, 2)), ckpt_path=resume)


def files(directory):
    return sorted(path.name for path in (OUT / directory).iterdir())


if __name__ == "__main__":
    if scenario.CASE == "own":
        first = fit("best", 1)
        fit_own(ModelCheckpoint(dirpath=str(OUT / "moved")), Moves())
        fit_own(Own(dirpath=str(OUT / "own")), resume=first)
        scenario.observe(files=sorted(str(path.relative_to(OUT)) for path in OUT.rglob("*.ckpt")))
        raise SystemExit
    first = fit("best", 1, monitor="score")
    fit("best", 3, resume=first, monitor="score")
    scenario.observe(same_directory=files("best"))

    first = fit("old", 1)
    fit("new", 3, resume=first)
    scenario.observe(other_directory={name: files(name) for name in ("old", "new")})

    first = fit("origin", 1)
    (OUT / "elsewhere").mkdir()
    copy = shutil.copy(first, str(OUT / "elsewhere" / "copy.ckpt"))
    fit("newer", 3, resume=copy)
    scenario.observe(copied={name: files(name) for name in ("origin", "elsewhere", "newer")})
