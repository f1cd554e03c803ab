"""A run that EarlyStopping has stopped is resumed. Cases: ``stopped``, ``threshold`` (it was stopped by a threshold),
``going`` (the run was not stopped), ``new`` (another run, without a checkpoint), ``again`` (the resumed run is resumed,
after another epoch)."""

import _scenario as scenario
import torch

kinds = scenario.pytorch("callbacks")
CASE = scenario.CASE
VALUES = [1, 2, 3, 0, 0, 0, 0, 0]


class Model(scenario.BoringModel):
    def validation_step(self, batch, batch_idx):
        self.log("metric", torch.tensor(float(VALUES[self.current_epoch])))


def fit(epochs, path=None, patience=2):
    options = {"stopping_threshold": 0.5} if CASE == "threshold" else {}
    stopping = kinds.EarlyStopping("metric", patience=9 if CASE in ("going", "threshold") else patience, **options)
    directory = f"until-{epochs}"
    trainer = scenario.trainer(
        accelerator="cpu",
        max_epochs=epochs,
        limit_train_batches=1,
        limit_val_batches=1,
        num_sanity_val_steps=0,
        callbacks=[stopping, kinds.ModelCheckpoint(directory, "last")],
    )
    trainer.fit(Model(), ckpt_path=path)
    return trainer


if __name__ == "__main__":
    first = fit(3 if CASE == "going" else 6)
    path = first.checkpoint_callback.best_model_path
    if CASE == "again":
        path = fit(4, path).checkpoint_callback.best_model_path
    with scenario.observing_warnings():
        second = fit(4 if CASE == "stopped" else 7, None if CASE == "new" else path)
    scenario.observe(epochs=[first.current_epoch, second.current_epoch])
