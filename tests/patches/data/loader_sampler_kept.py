"""What a DataLoader draws from, on two CPU ranks, in predict and with overfit_batches.

Cases: ``subset`` (in a custom batch sampler), ``unseeded`` (SubsetRandomSampler without a seed), ``ranks`` (with
another seed on each rank), ``pairs`` (two shuffled loaders), ``predict`` and ``overfit`` (one process), ``shuffled``
(a plain loader), ``fabric``, ``own`` (a custom sampler), ``plain`` (in torch's BatchSampler), ``distributed`` and
``unsized`` (a DistributedSampler and a generator in it). With ``direct``, the loader has the sampler itself."""

from _expect import bug, patched, same, whole_run

ERROR = "stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"


def _items(result):
    return sorted(sum((rank["seen"] for rank in result.observations), []))


UPPER_HALF = whole_run(lambda result: len(_items(result)) == 8 and min(_items(result)) >= 8)
ONCE = whole_run(lambda result: _items(result) == list(range(16)))
OTHERS = [{"seen": list(range(1 - rank, 16, 2)), "sizes": [4]} for rank in range(2)]

EXPECT = [
    bug("predict", stock={"seen": list(range(12))}, patched={"seen": [9, 3, 7, 1]}, like="predict, direct"),
    bug("plain", stock=ERROR, like="plain, direct"),
    patched(["subset", "overfit", "fabric"], "sampler is kept", UPPER_HALF, toggle="default,exact-data"),
    patched(["unseeded", "ranks"], "all ranks divide one order", ONCE, toggle="default,exact-data"),
    patched("pairs", "two loaders have different orders", {"pairs": False}, toggle="default,exact-data"),
    patched("own", "order is kept", [{"seen": list(range(15 - rank, -1, -2))} for rank in range(2)]),
    patched("distributed", "custom distributed sampler is kept", OTHERS, on=("2.0.0", "2.6.6")),
    # Such a sampler cannot be divided among the ranks. As on stock, they divide the dataset instead.
    patched("unsized", "sampler without a length divides the dataset", {"sizes": [4]}),
    same("shuffled", "shuffled loader is unchanged", ONCE, toggle="default,exact-data"),
]

import _scenario as scenario
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
)

KIND, _, REST = scenario.CASE.partition(", ")
ITEMS = torch.arange(16)[:, None]


class Chosen(Sampler):
    def __init__(self, items=(9, 3, 7, 1)):
        """In torch 1.13, the method of Sampler has a parameter."""
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)


class Batches(BatchSampler):
    """A custom batch sampler of the usual form, which Lightning can copy."""


def loader():
    half = SubsetRandomSampler(range(8, 16))
    if KIND == "predict":
        direct = {"sampler": Chosen(), "batch_size": 2}
        return DataLoader(ITEMS[:12], **(direct if REST else {"batch_sampler": Batches(Chosen(), 2, False)}))
    if KIND in ("subset", "fabric"):
        return DataLoader(ITEMS, batch_sampler=Batches(half, 2, False))
    if KIND == "overfit":
        return DataLoader(ITEMS, sampler=half, batch_size=8)
    if KIND in ("unseeded", "ranks"):
        return DataLoader(ITEMS, sampler=SubsetRandomSampler(range(16)), batch_size=2)
    if KIND == "own":
        return DataLoader(ITEMS, sampler=Chosen(range(15, -1, -1)), batch_size=4)
    if KIND == "plain" and REST:
        return DataLoader(ITEMS, sampler=SequentialSampler(ITEMS), batch_size=4, drop_last=True)
    if KIND in ("plain", "distributed", "unsized"):
        of = SequentialSampler(ITEMS) if KIND == "plain" else iter(range(16))
        if KIND == "distributed":
            of = DistributedSampler(ITEMS, num_replicas=2, rank=1 - scenario.rank(), shuffle=False)
        return DataLoader(ITEMS, batch_sampler=BatchSampler(of, 4, True))
    return DataLoader(ITEMS, batch_size=2, shuffle=True)


class Model(scenario.boring_model()):
    def __init__(self):
        super().__init__()
        self.seen, self.sizes, self.pairs = [], set(), []

    def training_step(self, batch, batch_idx):
        if KIND == "pairs":
            self.pairs += [bool(torch.equal(*batch))]
        else:
            self.predict_step(batch)
        return self.layer(torch.ones(1, 32)).sum()

    def predict_step(self, batch, *_):
        self.seen += batch.flatten().tolist()
        self.sizes.add(len(batch))


def run():
    if KIND != "unseeded":
        scenario.pl.seed_everything(5 + (KIND == "ranks") * scenario.rank())
    model = Model()
    devices = {"devices": 1} if KIND in ("predict", "overfit") else {"devices": 2, "strategy": "ddp"}
    overfit = {"overfit_batches": 1} if KIND == "overfit" else {}
    trainer = scenario.trainer(max_epochs=1, limit_val_batches=0, **devices, **overfit)
    with scenario.observing_warnings():
        if KIND == "predict":
            trainer.predict(model, loader())
        else:
            trainer.fit(model, [loader(), loader()] if KIND == "pairs" else loader())
    scenario.observe(seen=model.seen, sizes=sorted(model.sizes), pairs=all(model.pairs))


if __name__ == "__main__":
    if KIND == "fabric":
        fabric = scenario.fabric().Fabric(accelerator="cpu", devices=2, strategy="ddp")
        fabric.launch()
        scenario.observe(seen=torch.cat(list(fabric.setup_dataloaders(loader()))).flatten().tolist())
        fabric.barrier()
    else:
        with scenario.observing_errors():
            run()
