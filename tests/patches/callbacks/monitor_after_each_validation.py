"""Callbacks with a monitor. Cases: none (check_val_every_n_epoch=2 and no validation), ``part`` (val_check_interval=0.5
and no validation), ``one`` (val_check_interval=1); ``options``, ``options-one`` (the callbacks' options are set)."""

from _expect import bug, fixed, same

RIGHT = {"epochs": 2, "files": ["epoch=0-step=2.ckpt"]}
EXPECT = [
    bug(stock={"epochs": 4, "files": []}, patched=RIGHT, like="options"),
    fixed("part", stock={"epochs": 4}, patched=RIGHT),
    fixed("one", stock={"epochs": 2}, patched={"epochs": 1, "files": ["epoch=0-step=1.ckpt"]}, like="options-one"),
    same(["options", "options-one"], "callbacks with options are unchanged", on=("2.0.0", "2.6.6")),
]

import os

import _scenario as scenario

CASE = scenario.CASE
callbacks = scenario.pytorch("callbacks")


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        if "one" not in CASE:
            self.log("loss", 1.0, on_step=False, on_epoch=True)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        self.log("loss", 1.0)


if __name__ == "__main__":
    at_end = {"options": True, "options-one": False}.get(CASE)
    interval = {"part": 0.5, "one": 1, "options-one": 1}
    options = {"val_check_interval": interval[CASE]} if CASE in interval else {"check_val_every_n_epoch": 2}
    trainer = scenario.trainer(
        accelerator="cpu",
        max_epochs=4,
        limit_train_batches=2,
        limit_val_batches=1 if "one" in CASE else 0,
        num_sanity_val_steps=0,
        callbacks=[
            callbacks.ModelCheckpoint("saved", monitor="loss", save_on_train_epoch_end=at_end),
            callbacks.EarlyStopping("loss", patience=1, check_on_train_epoch_end=at_end),
        ],
        **options,
    )
    trainer.fit(Model())
    files = os.listdir("saved") if os.path.exists("saved") else []
    scenario.observe(epochs=trainer.current_epoch, files=sorted(files))
