"""Under Hydra, the second rank of DDP has another output directory, and overwrites Hydra's files. Cases: "" (Hydra does
not change the directory) and ``chdir`` (it does), both with a Trainer; ``fabric`` (as ""), ``drawn`` (as ``chdir``, and
each read of hydra.run.dir gives another name)."""

from _expect import bug, fixed, same, whole_run


def saved_by_rank_one(result):
    """True if rank one has written Hydra's files, or its output directory is the start directory."""
    ranks = result.observations
    return len(ranks) == 2 and (ranks[1]["output"] == "" or ranks[0]["job"] == "train_ddp_process_1")


def one_directory(result):
    """True if all files of both ranks are in one directory."""
    files = [".hydra/config.yaml", ".hydra/hydra.yaml", ".hydra/overrides.yaml", "hydra_output_directory.log"]
    files = [f"results/first/{file}" for file in (*files, "result0.txt", "result1.txt", "train_ddp_process_1.log")]
    return [(rank["output"], rank["files"], rank["job"]) for rank in result.observations] == [
        ("results/first", files, "hydra_output_directory")
    ] * 2


EXPECT = [
    bug(["", "chdir", "fabric"], stock=whole_run(saved_by_rank_one), patched=whole_run(one_directory)),
    # Hydra's files are those of rank zero, not those of the last rank.
    *[
        fixed(
            case,
            "ranks that change directory keep their directory",
            stock=[{"job": "train_ddp_process_1"}] * 2,
            patched=[{"job": "hydra_output_directory", "works_in": directory}] * 2,
            alone=True,
        )
        for case, directory in (("chdir", "results/first"), ("drawn", "results/drawn"))
    ],
    same(
        ["chdir", "drawn"],
        "only the name of the job differs",
        compare=lambda ranks: [{**rank, "job": None} for rank in ranks],
        alone=True,
    ),
]

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
