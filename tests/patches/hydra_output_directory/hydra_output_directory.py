"""Under Hydra, the second rank of DDP has another output directory, and overwrites Hydra's files. Cases: "" (Hydra does
not change the directory) and ``chdir`` (it does), both with a Trainer; ``fabric`` (as ""), ``drawn`` (as ``chdir``, and
each read of hydra.run.dir gives another name)."""

import os
import uuid
from pathlib import Path

import _scenario as scenario

from tests.support import with_hydra  # noqa: F401

import hydra  # isort: skip
from hydra.core.config_store import ConfigStore  # isort: skip
from hydra.core.hydra_config import HydraConfig  # isort: skip
from omegaconf import OmegaConf  # isort: skip

CASE = scenario.CASE
START = os.getcwd()
OmegaConf.register_new_resolver("draw", lambda: uuid.uuid4().hex)
ConfigStore.instance().store(
    "config",
    {
        "hydra": {
            "run": {"dir": "results/${draw:}" if CASE == "drawn" else "results/first"},
            "job": {"chdir": CASE in ("chdir", "drawn")},
        }
    },
)


def train():
    """Train. Return the rank and a barrier function."""
    if CASE == "fabric":
        fabric = scenario.fabric().Fabric(accelerator="cpu", devices=2, strategy="ddp")
        fabric.launch()
        return fabric.global_rank, fabric.barrier
    trainer = scenario.trainer(devices=2, strategy="ddp", max_steps=2, limit_val_batches=0)
    trainer.fit(scenario.BoringModel())
    return trainer.global_rank, trainer.strategy.barrier


def relative(path):
    """Return the path relative to the start directory, without the random name."""
    parts = Path(path).relative_to(START).parts
    return "/".join("drawn" if len(part) == 32 else part for part in parts)


@hydra.main(version_base=None, config_path=None, config_name="config")
def main(config):
    rank, barrier = train()
    output = Path(HydraConfig.get().runtime.output_dir)
    output.joinpath(f"result{rank}.txt").touch()
    barrier()
    files = sorted(relative(path) for path in Path(START).rglob("*") if path.is_file() and path.suffix != ".json")
    job = OmegaConf.load(Path(START, next(Path(START, "results").iterdir()), ".hydra", "hydra.yaml")).hydra.job.name
    scenario.observe(output=relative(output), works_in=relative(os.getcwd()), files=files, job=job)


if __name__ == "__main__":
    main()
