"""LightningCLI, and both the model and the datamodule save their hyperparameters. Cases: ``both``, ``model`` (only the
model saves them), ``unlogged`` (both, those of the datamodule with ``logger=False``), ``by hand`` (both, without
LightningCLI), ``conflict`` (the same, with different values of one hyperparameter)."""

from _expect import bug, same

CONFLICT = "RuntimeError: Error while merging hparams: the keys ['{}'] are present"

EXPECT = [
    bug(
        "both",
        stock=lambda seen: (seen["error"] or "").startswith(CONFLICT.format("_class_path")),
        patched=lambda seen: (seen["logged"]["width"], seen["logged"]["batch_size"]) == (2, 1),
    ),
    same(["model", "unlogged"], "logged hyperparameters are unchanged", lambda seen: "_class_path" in seen["logged"]),
    same("by hand", "hyperparameters logged by hand are unchanged", lambda seen: "_class_path" not in seen["logged"]),
    same(
        "conflict", "conflict is refused as on stock", lambda seen: seen["error"].startswith(CONFLICT.format("width"))
    ),
]

import os

import _scenario as scenario
import torch


class Model(scenario.BoringModel):
    def __init__(self, width: int = 2, **named):
        super().__init__()
        self.save_hyperparameters()


class Data(scenario.pl.LightningDataModule):
    def __init__(self, batch_size: int = 1, **named):
        super().__init__()
        if scenario.CASE != "model":
            self.save_hyperparameters(logger=scenario.CASE != "unlogged")

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.zeros(2, 32))


class Logger(scenario.pl.loggers.CSVLogger):
    logged = None

    def log_hyperparams(self, params):
        Logger.logged = {**params}
        super().log_hyperparams(params)


def fit():
    directory = os.getcwd()
    options = {
        **scenario.QUIET,
        "accelerator": "cpu",
        "max_steps": 1,
        "limit_val_batches": 0,
        "logger": Logger(directory),
    }
    if scenario.CASE in ("both", "model", "unlogged"):
        options["logger"] = {"class_path": "__main__.Logger", "init_args": {"save_dir": directory}}
        scenario.pytorch("cli").LightningCLI(
            save_config_callback=None,
            trainer_defaults=options,
            args=["fit", "--model=__main__.Model", "--data=__main__.Data"],
        )
        return
    conflict = scenario.CASE == "conflict"
    data = Data(width=3) if conflict else Data()
    scenario.pl.Trainer(**options).fit(Model(), datamodule=data)


if __name__ == "__main__":
    error = None
    try:
        fit()
    except RuntimeError as raised:
        error = f"{type(raised).__name__}: {raised}"
    scenario.observe(error=error, logged=Logger.logged)
