"""The finders' checkpoint if the model's hyperparameters contain a custom object. Cases: ``lr_callback``, ``lr_find``,
``scale_batch_size``; ``user_file`` loads a checkpoint of another user with the name of a finder's checkpoint.
``exchanged``: during the search another user replaces the finder's file by one that creates a directory when it is
read; ``exchanged_error``: and the search fails."""

from _expect import bug, fixed, patched, whole_run

ERROR = "Weights only load failed"


def is_refused(result):
    return not result.ok and result.observations[0]["called"] is False


EXPECT = [
    bug(
        ["lr_callback", "scale_batch_size"],
        stock=ERROR,
        like_variables=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
        alone=True,
    ),
    fixed(
        "lr_find",
        "lr find reads its own checkpoint",
        stock=ERROR,
        patched=lambda seen: seen["unchanged"],
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
    patched("user_file", "user's file with the name of a temporary checkpoint is refused", ERROR, alone=True),
    patched(
        "lr_callback", "local file that this run wrote is read by default", {}, toggle="default", on=("2.3.3", "2.6.6")
    ),
    # A user who can write to the directory during the search can't execute code, after success or failure.
    *[
        patched(
            ["exchanged", "exchanged_error"],
            "file that this run did not write is refused",
            whole_run(is_refused),
            toggle=toggle,
            on=("2.3.3", "2.6.6"),
        )
        for toggle in ("default", "tuner-cleanup-on-error")
    ],
]

from pathlib import Path

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset


class Settings:
    width = 4


class Caller:
    def __reduce__(self):
        return Path.mkdir, (Path("called"),)


class Model(scenario.pl.LightningModule):
    def __init__(self, settings):
        super().__init__()
        self.save_hyperparameters({"settings": settings})
        self.lr, self.batch_size = 1e-3, 2
        self.layer = torch.nn.Linear(settings.width, 1)

    def training_step(self, batch, batch_idx):
        if scenario.CASE.startswith("exchanged") and batch_idx == 2:
            (own,) = Path(self.trainer.default_root_dir).glob(".lr_find_*.ckpt")
            torch.save({**torch.load(own, weights_only=False), "of_somebody": Caller()}, own)
            if scenario.CASE == "exchanged_error":
                raise ValueError("in the middle of the search")
        return self.layer(batch[0]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.arange(64.0).reshape(16, 4) / 64), batch_size=self.batch_size)


if __name__ == "__main__":
    scenario.pl.seed_everything(7)
    model = Model(Settings())
    before = model.layer.weight.clone()
    finder = scenario.pl.callbacks.LearningRateFinder(max_lr=1e-2, num_training_steps=5, update_attr=False)
    trainer = scenario.trainer(max_epochs=1, callbacks=[finder] if scenario.CASE == "lr_callback" else [])
    tuner = scenario.tuner(trainer)
    with scenario.observing_errors():
        if scenario.CASE.startswith("exchanged"):
            try:
                tuner.lr_find(model, num_training=5, max_lr=1e-2, update_attr=False)
            finally:
                scenario.observe(called=Path("called").exists())
        if scenario.CASE == "lr_find":
            tuner.lr_find(model, num_training=5, max_lr=1e-2, update_attr=False)
            scenario.observe(unchanged=before.equal(model.layer.weight))
        elif scenario.CASE == "scale_batch_size":
            tuner.scale_batch_size(model, steps_per_trial=2, max_trials=2)
            scenario.observe(unchanged=before.equal(model.layer.weight), batch_size=model.batch_size)
        elif scenario.CASE == "user_file":
            trainer.fit(model)
            path = f"{trainer.default_root_dir}/.lr_find_0f0e0d0c-0000-4000-8000-000000000000.ckpt"
            trainer.save_checkpoint(path)
            trainer.fit_loop.max_epochs = 2
            trainer.fit(model, ckpt_path=path)
        if scenario.CASE != "user_file":
            trainer.fit(model)
    scenario.observe(steps=trainer.global_step, weight=model.layer.weight)
