"""With --seed_everything=true the saved configuration has no seed."""

from _expect import bug, same

EXPECT = [bug(stock={"seed": True}, patched={"seed": 7}), same("given", "given seed is saved", {"seed": 3})]

import os

import _scenario as scenario
import yaml

if __name__ == "__main__":
    os.environ["PL_GLOBAL_SEED"] = "7"  # the seed that `true` selects
    scenario.pytorch("cli").LightningCLI(
        scenario.BoringModel,
        trainer_defaults={**scenario.QUIET, "accelerator": "cpu", "max_steps": 1, "limit_val_batches": 0},
        args=["fit", f"--seed_everything={'3' if scenario.CASE == 'given' else 'true'}"],
    )
    with open(os.path.join(scenario.QUIET["default_root_dir"], "config.yaml")) as file:
        saved = yaml.safe_load(file)
    scenario.observe(seed=saved["seed_everything"])
