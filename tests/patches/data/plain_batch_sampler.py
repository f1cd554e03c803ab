"""A DataLoader with torch's BatchSampler. Cases: ``given`` (to fit, two CPU ranks), ``hook`` (train_dataloader makes
it, two ranks), ``weighted`` (the batch sampler draws from a WeightedRandomSampler, two ranks), ``distributed`` (from a
DistributedSampler of the user's, two ranks), ``unsized`` (from a generator, two ranks), ``overfit`` (overfit_batches,
one device), ``fabric`` (setup_dataloaders on one device), ``fabric ranks`` (on two). With ``direct``, the loader itself
is given the sampler and the batch size."""

from _expect import bug, fixed, patched, same, whole_run

ERROR = "stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"

# Each rank gets the other's items, unlike with Lightning's sampler.
OTHERS = [{"seen": 2 * [list(range(start, start + 8, 2)) for start in (1 - rank, 9 - rank)]} for rank in range(2)]


EXPECT = [
    bug("hook", stock=lambda seen: {len(batch) for batch in seen["seen"]} == {1}, like="hook, direct"),
    bug("fabric ranks", stock=ERROR, like="fabric ranks, direct"),
    fixed(
        ["given", "weighted"],
        "other loaders do not fail at the first batch",
        stock=ERROR,
        like="{}, direct",
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
    fixed("fabric", "fabrics loader does not fail at the first batch", stock=ERROR, like="{}, direct", on="2.0.0"),
    same("overfit", "loader for overfitting is unchanged", on=("2.0.0", "2.6.6")),
    same("fabric", "fabrics loader is unchanged"),
    patched("distributed", "custom distributed sampler is kept", OTHERS, on=("2.0.0", "2.6.6")),
    # Such a sampler cannot be split among the ranks. As on stock, they split the dataset instead.
    patched(
        "unsized",
        "sampler without a length trains as on stock",
        whole_run(lambda result: {len(batch) for rank in result.observations for batch in rank["seen"]} == {4}),
    ),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, SequentialSampler, WeightedRandomSampler

KIND, _, REST = scenario.CASE.partition(", ")
ITEMS = torch.arange(16.0).reshape(-1, 1)


def loader():
    if KIND == "weighted":
        sampler = WeightedRandomSampler(range(16), 16)
    elif KIND == "distributed":
        sampler = DistributedSampler(ITEMS, rank=1 - scenario.rank(), shuffle=False)
    elif KIND == "unsized":
        sampler = (index for index in range(16))
    else:
        sampler = SequentialSampler(ITEMS)
    if REST == "direct":
        return DataLoader(ITEMS, sampler=sampler, batch_size=4, drop_last=True)
    return DataLoader(ITEMS, batch_sampler=BatchSampler(sampler, batch_size=4, drop_last=True))


def fit():
    pl = scenario.pytorch()

    class Model(Linear):
        features = 1

        def __init__(self):
            super().__init__()
            self.seen = []

        def training_step(self, batch, batch_idx):
            self.seen.append([int(item) for item in batch.flatten()])
            return self.layer(batch).sum()

    class ModelWithLoader(Model):
        def train_dataloader(self):
            return loader()

    pl.seed_everything(3)
    made_by_hook = KIND in ("hook", "distributed", "unsized")
    model = ModelWithLoader() if made_by_hook else Model()
    on = {"overfit_batches": 2} if KIND == "overfit" else {"devices": 2, "strategy": "ddp"}
    trainer = scenario.trainer(max_epochs=2, **{"devices": 1, **on})
    trainer.fit(model, None if made_by_hook else loader())
    return model.seen


def iterate():
    devices = 2 if KIND == "fabric ranks" else 1
    fabric = scenario.fabric().Fabric(accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto")
    fabric.launch()
    seen = [[int(item) for item in batch.flatten()] for batch in fabric.setup_dataloaders(loader())]
    fabric.barrier()  # a rank that ends while others still connect would close the store
    return seen


if __name__ == "__main__":
    with scenario.observing_errors():
        scenario.observe(seen=iterate() if KIND.startswith("fabric") else fit())
