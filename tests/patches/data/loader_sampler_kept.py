"""What a DataLoader draws from, on two CPU ranks, in predict and with overfit_batches.

Cases: ``subset`` (in a custom batch sampler), ``unseeded`` (SubsetRandomSampler without a seed), ``pairs`` (two
shuffled loaders), ``predict`` and ``overfit`` (one process), ``shuffled`` (a plain loader), ``fabric``. With
``direct``, the loader of predict has the sampler itself."""

from _expect import bug, patched, same, whole_run


def _items(result):
    return sorted(sum((rank["seen"] for rank in result.observations), []))


UPPER_HALF = whole_run(lambda result: len(_items(result)) == 8 and min(_items(result)) >= 8)
ONCE = whole_run(lambda result: _items(result) == list(range(16)))

EXPECT = [
    bug("predict", stock={"seen": list(range(12))}, patched={"seen": [9, 3, 7, 1]}, like="predict, direct"),
    patched(["subset", "overfit", "fabric"], "sampler is kept", UPPER_HALF, toggle="default,exact-data"),
    patched("unseeded", "all ranks divide one order", ONCE, toggle="default,exact-data"),
    patched("pairs", "two loaders have different orders", {"pairs": False}, toggle="default,exact-data"),
    same("shuffled", "shuffled loader is unchanged", ONCE, toggle="default,exact-data"),
]

import _scenario as scenario
import torch
from torch.utils.data import BatchSampler, DataLoader, Sampler, SubsetRandomSampler

KIND, _, REST = scenario.CASE.partition(", ")
ITEMS = torch.arange(16)


class Chosen(Sampler):
    def __init__(self):
        """In torch 1.13, the method of Sampler has a parameter."""

    def __iter__(self):
        return iter([9, 3, 7, 1])

    def __len__(self):
        return 4


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
    if KIND == "unseeded":
        return DataLoader(ITEMS, sampler=SubsetRandomSampler(range(16)), batch_size=2)
    return DataLoader(ITEMS, batch_size=2, shuffle=True)


class Model(scenario.boring_model()):
    def __init__(self):
        super().__init__()
        self.seen, self.pairs = [], []

    def training_step(self, batch, batch_idx):
        if KIND == "pairs":
            self.pairs += [bool(torch.equal(*batch))]
        else:
            self.seen += batch.tolist()
        return self.layer(torch.ones(1, 32)).sum()

    def predict_step(self, batch, *_):
        self.seen += batch.tolist()


if __name__ == "__main__":
    if KIND == "fabric":
        fabric = scenario.fabric().Fabric(accelerator="cpu", devices=2, strategy="ddp")
        fabric.launch()
        scenario.observe(seen=torch.cat(list(fabric.setup_dataloaders(loader()))).tolist())
        fabric.barrier()
    else:
        if KIND != "unseeded":
            scenario.pl.seed_everything(5)
        model = Model()
        devices = {"devices": 1} if KIND in ("predict", "overfit") else {"devices": 2, "strategy": "ddp"}
        overfit = {"overfit_batches": 1} if KIND == "overfit" else {}
        trainer = scenario.trainer(max_epochs=1, limit_val_batches=0, **devices, **overfit)
        with scenario.observing_warnings():
            if KIND == "predict":
                trainer.predict(model, loader())
            else:
                trainer.fit(model, [loader(), loader()] if KIND == "pairs" else loader())
        scenario.observe(seen=model.seen, pairs=all(model.pairs))
