"""Run data loaders in stages of Trainer and Fabric, and compare the samples with the law of data.

Runs in a process with the Lightning and the patches of its variant (see ``resume.py``), and in the process of rank one.
A configuration is a loader, a stage, and the seed: ``subset, in own batches; fit; none``.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import warnings
from typing import Any, NamedTuple, Optional

if os.environ.get("SCENARIO_SHIM") == "1":
    import lightning_patches  # noqa: F401

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

IS_LIGHTNING = os.environ["SCENARIO_NAMESPACE"] == "lightning"
pl: Any = importlib.import_module("lightning.pytorch" if IS_LIGHTNING else "pytorch_lightning")
Fabric: Any = importlib.import_module("lightning.fabric" if IS_LIGHTNING else "lightning_fabric").Fabric

DATA = torch.arange(16)
SIZE = 2
UPPER = range(8, 16)
STAGES = ("fit", "validate", "predict", "overfit", "fabric")
SEEDS = ("none", "one", "rank")
OPTIONS = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
}


class Own(Sampler):  # type: ignore[type-arg]
    """Items in an order of the program."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Even(RandomSampler):
    def __iter__(self) -> Any:
        return (item for item in super().__iter__() if item % 2 == 0)

    def __len__(self) -> int:
        return 8


class OwnBatches(BatchSampler):
    """A custom batch sampler."""


class Drawn(NamedTuple):
    """A sampler, and what it yields in an epoch.

    Args:
        items: the items, in this order unless it shuffles.
        shuffles: True for another order in each epoch.
        number: the number of items, if it draws some of them several times.
    """

    make: Any
    items: Any = range(16)
    shuffles: bool = False
    number: Optional[int] = None


SAMPLERS = {
    "sequential": Drawn(lambda: SequentialSampler(DATA)),
    "random": Drawn(lambda: RandomSampler(DATA), shuffles=True),
    "subset": Drawn(lambda: SubsetRandomSampler(UPPER), UPPER, True),
    "weighted": Drawn(lambda: WeightedRandomSampler([0.0] * 8 + [1.0] * 8, 16), UPPER, True, 16),
    "num_samples": Drawn(lambda: RandomSampler(DATA, num_samples=8), shuffles=True, number=8),
    "replacement": Drawn(lambda: RandomSampler(DATA, replacement=True, num_samples=32), shuffles=True, number=32),
    "random source": Drawn(lambda: RandomSampler(range(8)), range(8), True),
    "sequential source": Drawn(lambda: SequentialSampler(range(8)), range(8)),
    "own": Drawn(lambda: Own(range(15, 3, -1)), range(15, 3, -1)),
    "subclass": Drawn(lambda: Even(DATA), range(0, 16, 2), True),
}
BATCHES = {"": None, "in batches": BatchSampler, "in own batches": OwnBatches}


def names() -> list[str]:
    loaders = [f"{sampler}, {batches}".strip(", ") for sampler in SAMPLERS for batches in BATCHES]
    return [f"{loader}; {stage}; {seed}" for loader in loaders for stage in STAGES for seed in SEEDS]


class Net(pl.LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.epochs: list[list[list[int]]] = []

    def begin(self) -> None:
        self.epochs.append([])

    on_train_epoch_start = on_validation_epoch_start = on_predict_epoch_start = begin

    def step(self, batch: Any, *_: Any) -> Any:
        self.epochs[-1].append(batch.tolist())
        return self.weight.sum()

    training_step = validation_step = predict_step = step

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


def seen(loader: Any, stage: str, devices: int) -> Any:
    """Return the batches of this rank in each epoch."""
    ranks = {"devices": devices, "strategy": "ddp" if devices > 1 else "auto"}
    if stage == "fabric":
        fabric = Fabric(accelerator="cpu", **ranks)
        fabric.launch()
        loader = fabric.setup_dataloaders(loader)
        return [[batch.tolist() for batch in loader] for _ in range(2)]
    net = Net()
    trainer = pl.Trainer(max_epochs=2, overfit_batches=2 if stage == "overfit" else 0, **ranks, **OPTIONS)
    getattr(trainer, "fit" if stage == "overfit" else stage)(net, loader)
    return net.epochs


def violations(drawn: Drawn, stage: str, ranks: list[Any]) -> list[str]:
    """Return what differs from the law: the ranks together see what the loader yields in one process."""
    found = set()
    first: list[Any] = []
    for epoch in zip(*ranks):
        of_ranks = [sum(batches, []) for batches in epoch]
        items = [item for turn in zip(*of_ranks) for item in turn]
        found |= {"other items"} if set(items) - set(drawn.items) else set()
        found |= {"size of batches"} if any(len(batch) != SIZE for batches in epoch for batch in batches) else set()
        if stage == "overfit":
            found |= {"other batches"} if first and items != first else set()
        elif drawn.number is not None:
            found |= {"number of items"} if len(items) != drawn.number else set()
        else:
            found |= {"missing items"} if set(drawn.items) - set(items) else set()
            found |= {"items seen twice"} if len(set(items)) < len(items) else set()
        if stage in ("fit", "fabric") and drawn.shuffles:
            found |= {"not shuffled anew"} if items == first else set()
        elif not drawn.shuffles and stage != "overfit":
            found |= {"another order"} if items != list(drawn.items) else set()
        first = items
    return sorted(found)


def run(name: str, devices: int) -> Any:
    loader, stage, seed = name.split("; ")
    sampler, _, batches = loader.partition(", ")
    drawn, rank = SAMPLERS[sampler], int(os.environ.get("LOCAL_RANK", 0))
    os.environ.pop("PL_GLOBAL_SEED", None)
    torch.seed()
    if seed != "none":
        pl.seed_everything(1 + rank * (seed == "rank"))
    of = BATCHES[batches]
    options = (
        {"sampler": drawn.make(), "batch_size": SIZE}
        if of is None
        else {"batch_sampler": of(drawn.make(), SIZE, False)}
    )
    try:
        shown = seen(DataLoader(DATA, **options), stage, devices)
    except Exception as error:
        shown = f"{type(error).__name__}: {error}"[:200]
    if devices == 1:
        ranks = [shown]
    else:
        ranks = [None] * devices
        torch.distributed.all_gather_object(ranks, shown)
    errors = [one for one in ranks if isinstance(one, str)]
    return errors[:1] or violations(drawn, stage, ranks)


def main(run: Any = run, names: Any = names) -> None:
    """Write the violations of configurations to a file. Arguments: the file, and names; all by default."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "pytorch_lightning", "lightning.fabric", "lightning_fabric", "lightning_patches"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    path, *chosen = sys.argv[1:]
    found = {f"{name}; {devices}": run(name, devices) for devices in (1, 2) for name in chosen or names()}
    if int(os.environ.get("LOCAL_RANK", 0)) == 0:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found, file)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
