"""With torch 2.0 and later, the command line of 1.6 to 1.8 accepts none of torch's schedulers."""

from _expect import bug, fixed, patched

RIGHT = {"lr": 0.025}


EXPECT = [
    bug(stock="lr_scheduler", fresh=True),
    fixed(
        "", "schedulers are accepted", stock="Could not generate a config for", patched=RIGHT, fresh=True, on="1.6.5"
    ),
    fixed("", "schedulers are accepted", stock="lr_scheduler", patched=RIGHT, fresh=True, on="1.8.6"),
    patched("", "schedulers are accepted", RIGHT, fresh=True, on="1.7.7"),
    # 1.6 refuses a scheduler by its path with torch 1.13, too.
    patched("by its path", "scheduler is accepted by its path", RIGHT, fresh=True, on=("1.7.7", "1.8.6")),
    patched("of one class", "scheduler of one class is accepted", RIGHT, fresh=True, on=("1.6.5", "1.7.7", "1.8.6")),
]

import sys

import _model_1x as user
import _scenario as scenario
import torch

try:
    cli = scenario.pytorch("cli")
except ImportError:
    cli = scenario.pytorch("utilities.cli")


class CommandLine(cli.LightningCLI):
    def add_arguments_to_parser(self, parser):
        if scenario.CASE == "of one class":
            parser.add_optimizer_args(torch.optim.SGD)
            parser.add_lr_scheduler_args(torch.optim.lr_scheduler.ExponentialLR)


class Model(user.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    training_step = user.Model.training_step
    train_dataloader = user.Model.train_dataloader


ARGUMENTS = {
    "": ["--optimizer=SGD", "--lr_scheduler=ExponentialLR"],
    "by its path": ["--optimizer=SGD", "--lr_scheduler=torch.optim.lr_scheduler.ExponentialLR"],
    "of one class": [],
}

if __name__ == "__main__":
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    sys.argv[1:] = ["fit", *ARGUMENTS[scenario.CASE], "--optimizer.lr=0.1", "--lr_scheduler.gamma=0.5"]
    defaults = {"max_epochs": 2, **dict.fromkeys(quiet, False)}
    trainer = CommandLine(Model, save_config_callback=None, trainer_defaults=defaults).trainer
    scenario.observe(lr=user.lr_of(trainer))
