"""Pull request 21016: a ``RichProgressBar`` with rich 14.1 or later, over several stages and a second fit."""

from _expect import bug

ERROR = "IndexError: pop from empty list"

EXPECT = [
    bug(
        stock={"error": ERROR},
        patched={"epochs": 3},
        compare=("bars", "weights", "epochs"),
    )
]

from tests.support import with_rich  # noqa: F401  # isort: skip

import _scenario as scenario
import torch
from _model import Linear
from rich.text import Text
from torch.utils.data import DataLoader, TensorDataset

callbacks = scenario.pytorch("callbacks")


class Model(Linear):
    features, lr = 1, 0.01

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("validation", self.layer(batch[0]).mean())

    test_step = validation_step

    def predict_step(self, batch, batch_idx):
        return self.layer(batch[0])


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    bar = callbacks.RichProgressBar()
    trainer = scenario.trainer(devices=1, max_epochs=2, callbacks=[bar], enable_progress_bar=True)
    model = Model()
    loader = DataLoader(TensorDataset(torch.arange(4.0).reshape(4, 1)), batch_size=1)
    with scenario.observing_errors():
        trainer.fit(model, loader, loader)
        # Without colors: older releases set them, newer ones use the theme.
        names = [Text.from_markup(task.description).plain for task in bar.progress.tasks]
        bars = {"fit": [(n, task.completed, task.total) for n, task in zip(names, bar.progress.tasks)]}
        if scenario.is_1x():  # the bar of the epoch includes the four batches of the validation
            of_validation = [4 if "Epoch" in name else 0 for name, _, _ in bars["fit"]]
            bars["fit"] = [(name, one - n, all_ - n) for (name, one, all_), n in zip(bars["fit"], of_validation)]
        for stage in (trainer.validate, trainer.test, trainer.predict):
            stage(model, loader)
            bars[stage.__name__] = [(task.completed, task.total) for task in bar.progress.tasks]
        trainer.fit_loop.max_epochs = 3
        trainer.fit(model, loader, loader)
    scenario.observe(bars=bars, weights=model.layer.weight, epochs=trainer.current_epoch)
