"""Issue 18687: a run that resumes from the checkpoint of another ModelCheckpoint leaves an old best checkpoint next to
the new one. Cases: ``last_first`` and ``best_first`` (the order of the two ModelCheckpoints), ``whole`` (last first,
without a resume), ``alone`` (only the best), ``other`` (resumed in another directory), ``deleted`` (best deleted
before the resume)."""

from _expect import bug, same

EXPECT = [
    bug(
        "last_first",
        stock={"best": ["best-epoch=1.ckpt", "best-epoch=3.ckpt"]},
        patched={"best": ["best-epoch=3.ckpt"]},
        like="best_first",
        compare="best",
    ),
    same(["best_first", "alone"], "callbacks in the right order are unchanged", toggle="all", on=("1.8.0", "2.6.6")),
]

from pathlib import Path

import _scenario as scenario
from _model import Module

CASE = scenario.CASE
ModelCheckpoint = scenario.pl.callbacks.ModelCheckpoint


class Model(Module, scenario.BoringModel):
    def validation_step(self, batch, batch_idx):
        self.log("loss", 5.0 - self.current_epoch)
        return super().validation_step(batch, batch_idx)


def fit(epochs, directory, ckpt_path=None):
    last = ModelCheckpoint(directory, "last-{epoch}")
    best = ModelCheckpoint(directory, "best-{epoch}", monitor="loss", save_last=True if CASE == "alone" else None)
    callbacks = {"best_first": [best, last], "alone": [best]}.get(CASE, [last, best])
    trainer = scenario.trainer(max_epochs=epochs, limit_train_batches=2, limit_val_batches=1, callbacks=callbacks)
    trainer.fit(Model(), ckpt_path=ckpt_path)


if __name__ == "__main__":
    with scenario.observing_warnings():
        if CASE == "whole":
            fit(4, "run")
        else:
            fit(2, "run")
            if CASE == "deleted":
                Path("run/best-epoch=1.ckpt").unlink()
            last = "run/last.ckpt" if CASE == "alone" else "run/last-epoch=1.ckpt"
            fit(4, "other" if CASE == "other" else "run", last)
    scenario.observe(best=sorted(path.name for path in Path().glob("*/best*.ckpt")))
