"""A checkpoint's file name asks for two metrics, and the name of one begins with that of the other. Cases: the file
name, as ModelCheckpoint gets it (none for its own); with the prefix ``plain:`` also
``auto_insert_metric_name=False``."""

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
