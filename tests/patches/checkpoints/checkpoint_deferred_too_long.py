"""A checkpoint is due at the last batch of each epoch, but the next validation is in the next epoch.

Cases: ``once`` for one epoch, ``steps-only`` without a validation, ``explicit`` with one at the end of each epoch,
``validated`` for a metric of validation, ``subclass`` for a subclass of ModelCheckpoint."""

from _expect import bug, fixed, same

RIGHT = {"files": ["step=10.ckpt", "step=15.ckpt", "step=5.ckpt"]}
LATE = {"files": ["step=12.ckpt", "step=7.ckpt"]}
EXPECT = [
    bug(stock=LATE, patched=RIGHT, like="steps-only"),
    fixed("once", stock={"files": []}, patched={"files": ["step=5.ckpt"]}),
    same("steps-only", "nothing is validated", RIGHT),
    same("explicit", "the validation at the end of the epoch follows", RIGHT),
    same("validated", "the next validation computes the metric", LATE),
    same("subclass", "a subclass of ModelCheckpoint", LATE),
]

import os

import _scenario as scenario

CASE = scenario.CASE


class Logs(scenario.boring_model()):
    def training_step(self, batch, batch_idx):
        self.log("loss", 1.0)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        self.log("val", 1.0)


class Own(scenario.pl.callbacks.ModelCheckpoint):
    pass


if __name__ == "__main__":
    saved = (Own if CASE == "subclass" else scenario.pl.callbacks.ModelCheckpoint)(
        filename="{step}",
        monitor="val" if CASE == "validated" else "loss",
        every_n_train_steps=5,
        save_top_k=-1,
        save_on_train_epoch_end=False,
    )
    scenario.trainer(
        max_epochs=1 if CASE == "once" else 3,
        limit_train_batches=5,
        limit_val_batches=0 if CASE == "steps-only" else 1,
        val_check_interval=1.0 if CASE == "explicit" else 2,
        num_sanity_val_steps=0,
        callbacks=saved,
    ).fit(Logs())
    scenario.observe(files=sorted(map(os.path.basename, saved.best_k_models)))
