"""Two hooks log in turn, and the epoch metrics lack the first batch.

Cases: ``quiet`` if only training_step logs, ``again`` for validations between the batches and a second fit."""

from _expect import bug, fixed, same

RIGHT = {"means": [5.0, 4.0], "best": "epoch=1-loss=4.ckpt"}
EXPECT = [
    bug(stock={"means": [1.0, 4.0], "best": "epoch=0-loss=1.ckpt"}, patched=RIGHT, like="quiet"),
    fixed("again", stock={"means": [1.0, 4.0, 1.0, 4.0]}, patched={"means": [5.0, 4.0, 5.0, 4.0]}, compare=("means",)),
    same("quiet", "only training_step logs", RIGHT, on=("1.8.6", "2.0.0", "2.6.6")),
]

import os

import _scenario as scenario

CASE = scenario.CASE
LOSS = [[9.0, 1.0], [4.0, 4.0]]  # of each epoch and batch


class Manual(scenario.boring_model()):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.log("loss", LOSS[self.current_epoch][batch_idx], on_step=False, on_epoch=True)
        self.manual_backward(self.layer(batch).mean())
        optimizer.step()
        self.log("lr", 0.1)

    def on_before_optimizer_step(self, *_):
        if CASE != "quiet":
            self.log("grad_norm", 1.0)

    def validation_step(self, batch, batch_idx):
        self.log("val", 1.0)


class Means(scenario.pl.Callback):
    def __init__(self):
        self.means = []

    def on_train_epoch_end(self, trainer, *_):
        self.means.append(trainer.callback_metrics["loss"].item())


if __name__ == "__main__":
    means, best = Means(), scenario.pl.callbacks.ModelCheckpoint(filename="{epoch}-{loss:.0f}", monitor="loss")
    options = {"limit_val_batches": 2, "val_check_interval": 1} if CASE == "again" else {"limit_val_batches": 0}
    trainer = scenario.trainer(max_epochs=2, limit_train_batches=2, callbacks=[means, best], **options)
    trainer.fit(Manual())
    if CASE == "again":
        trainer.fit_loop.epoch_progress.reset()
        trainer.fit(Manual())
    scenario.observe(means=means.means, best=os.path.basename(best.best_model_path))
