"""The batch size finder searches at epoch 2, and the following epochs train with the size that it found.

Cases: ``by-hand``, where the program sets this size; ``search`` for a search before a run with max_steps, ``set`` for
the same with the size set by hand; ``start``, where the finder searches when fit starts."""

from _expect import bug, same

EXPECT = [
    bug(
        stock=lambda seen: seen["epochs"] != [4, 4, 8, 8], patched={"epochs": [4, 4, 8, 8], "steps": 48}, like="by-hand"
    ),
    bug("search", stock={"sane": False}, patched={"sane": True, "steps": 6}, like="set"),
    same("start", "a search when fit starts"),
]

import contextlib

import _scenario as scenario
import torch

CASE = scenario.CASE


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.batch_size = 4
        self.epochs = {}
        self.sane = False

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.ones(64, 32), batch_size=self.batch_size)

    def val_dataloader(self):
        return torch.utils.data.DataLoader(torch.ones(8, 32), batch_size=2)

    def validation_step(self, batch, batch_idx):
        self.sane |= self.trainer.sanity_checking

    def training_step(self, batch, batch_idx):
        if len(batch) > 10:
            raise RuntimeError("CUDA out of memory. Tried to allocate")
        self.epochs[self.current_epoch] = len(batch)
        return super().training_step(batch, batch_idx)


class Finder(scenario.pl.callbacks.BatchSizeFinder):
    def on_fit_start(self, trainer, model):
        if CASE == "start":
            super().on_fit_start(trainer, model)

    def on_train_epoch_start(self, trainer, model):
        if trainer.current_epoch == 2 and CASE != "start":
            self.scale_batch_size(trainer, model)


class ByHand(scenario.pl.Callback):
    def on_train_epoch_start(self, trainer, model):
        if trainer.current_epoch == 2:
            model.batch_size = 8
            trainer.fit_loop._combined_loader = None
            trainer.fit_loop.setup_data()


if __name__ == "__main__":
    model = Model()
    if CASE in ("search", "set"):
        trainer = scenario.trainer(max_steps=6, max_epochs=-1)
        if CASE == "search":
            scenario.tuner(trainer).scale_batch_size(model, max_trials=2)
            model.sane = False
        model.batch_size = 4
    else:
        callback = ByHand() if CASE == "by-hand" else Finder(init_val=4, max_trials=6)
        trainer = scenario.trainer(max_epochs=4, num_sanity_val_steps=0, limit_val_batches=1, callbacks=[callback])
    with contextlib.suppress(RuntimeError):  # stock finds a size that does not fit
        trainer.fit(model)
    epochs = [model.epochs.get(epoch, 0) for epoch in range(trainer.current_epoch)]
    scenario.observe(epochs=epochs, sane=model.sane, steps=trainer.global_step)
