"""In 1.6.0 and 1.6.1, LightningCLI imports a function from jsonargparse, but gets a package of that name."""

from _expect import fixed

EXPECT = [
    fixed(
        "",
        "command line starts",
        stock="'module' object is not callable",
        patched={"lr": 0.2, "steps": 4},
        fresh=True,
        on=("1.6.0", "1.6.1"),
    )
]

import sys

import _model_1x as user
import _scenario as scenario

if __name__ == "__main__":
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    sys.argv[1:] = ["fit", "--model.lr=0.2", "--trainer.max_epochs=1"]
    command_line = scenario.pytorch("utilities.cli").LightningCLI
    cli = command_line(user.Model, save_config_callback=None, trainer_defaults=dict.fromkeys(quiet, False))
    scenario.observe(lr=user.lr_of(cli.trainer), steps=cli.trainer.global_step)
