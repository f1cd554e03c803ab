"""PR 18056: with --seed_everything=true the configuration that is saved has no seed."""

import os

import _scenario as scenario
import yaml

pl = scenario.pytorch()

if __name__ == "__main__":
    out = os.environ.get("SCENARIO_OUT", ".")
    os.environ["PL_GLOBAL_SEED"] = "7"  # what "drawn at random" is, where it is set
    scenario.pytorch("cli").LightningCLI(
        scenario.pytorch("demos.boring_classes").BoringModel,
        trainer_defaults={
            "accelerator": "cpu",
            "max_steps": 1,
            "limit_val_batches": 0,
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "default_root_dir": out,
        },
        args=["fit", f"--seed_everything={'3' if scenario.CASE == 'given' else 'true'}"],
    )
    with open(os.path.join(out, "config.yaml")) as file:
        saved = yaml.safe_load(file)
    scenario.observe(seed=saved["seed_everything"])
