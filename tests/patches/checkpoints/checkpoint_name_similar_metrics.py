"""A checkpoint's file name asks for two metrics, and the name of one begins with that of the other. Cases: the file
name, as ModelCheckpoint gets it (none for its own); with the prefix ``plain:`` also
``auto_insert_metric_name=False``."""

from _expect import bug, same

ERROR = "ValueError: Only '.' or '[' may follow ']' in format field specifier"
NAMES = {
    "{epoch}-{epoch_loss:.2f}": ["epoch=0-epoch_loss=0.25.ckpt", "epoch=1-epoch_loss=0.25.ckpt"],
    "{epoch}-{epoch_loss:.2f}-{none}": ["epoch=0-epoch_loss=0.25-none=0.ckpt", "epoch=1-epoch_loss=0.25-none=0.ckpt"],
    "plain:{epoch}-{epoch_loss:.2f}": ["0-0.25.ckpt", "1-0.25.ckpt"],
    "{loss:.2f}-{loss/train:.2f}": ["loss=0.75-loss/train=0.50-v1.ckpt", "loss=0.75-loss/train=0.50.ckpt"],
}

EXPECT = [
    *[
        bug(case, stock={"error": ERROR, "files": []}, patched={"error": None, "files": names})
        for case, names in NAMES.items()
    ],
    same(
        ["", "{loss/train:.2f}-{loss:.2f}", "{epoch}-{step}-{loss:.2f}", "{epoch}-{epoch}"],
        "correct names are unchanged",
        lambda seen: seen["error"] is None and len(seen["files"]) == 2,
        on="2.0.0",
    ),
]

import os

import _scenario as scenario


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        self.log("epoch_loss", 0.25)
        self.log("loss/train", 0.5)
        self.log("loss", 0.75)
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    plain = scenario.CASE.startswith("plain:")
    filename = scenario.CASE[len("plain:") :] if plain else scenario.CASE or None
    directory = "checkpoints"
    callback = scenario.pl.callbacks.ModelCheckpoint(
        directory, filename=filename, save_top_k=-1, auto_insert_metric_name=not plain
    )
    trainer = scenario.trainer(max_epochs=2, limit_train_batches=2, limit_val_batches=0, callbacks=callback)
    error = None
    try:
        trainer.fit(Model())
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    files = [
        os.path.relpath(os.path.join(path, name), directory) for path, _, names in os.walk(directory) for name in names
    ]
    scenario.observe(error=error, files=sorted(files))
