"""A search that fails in fit, with callbacks that have on_exception."""

from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

callbacks = scenario.pytorch("callbacks")
told = []


class Model(Linear):
    features, lr = 4, 0.125

    def training_step(self, batch, batch_idx):
        if batch_idx == 2:
            raise ValueError("the step broke")
        return self.layer(batch[0]).pow(2).mean()


class Tell(callbacks.Callback):
    def on_exception(self, trainer, pl_module, exception):
        told.append(f"{type(exception).__name__}: {exception}")


if __name__ == "__main__":
    scenario.pl.seed_everything(7)
    model = Model()
    initial = {name: value.clone() for name, value in model.state_dict().items()}
    finder = callbacks.LearningRateFinder(num_training_steps=12)
    trainer = scenario.trainer(
        max_epochs=1, devices=1, callbacks=[finder, Tell(), callbacks.OnExceptionCheckpoint("saved")]
    )
    try:
        trainer.fit(model, DataLoader(TensorDataset(torch.arange(256.0).reshape(64, 4) / 256), batch_size=4))
    except ValueError:
        pass
    saved, path = None, Path("saved", "on_exception.ckpt")
    if path.exists():
        weights = torch.load(path, weights_only=False)["state_dict"]
        same = all(weights[name].equal(initial[name]) for name in initial)
        saved = "the initial weights" if same else "those of the trial"
    scenario.observe(told=told, saved=saved)
