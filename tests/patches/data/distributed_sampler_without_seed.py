"""A shuffled DataLoader on two CPU ranks that have different random states, as without a seed. Cases: ``shuffled``,
``seeded`` (with seed_everything), ``generator`` (the order has a separate seed), ``some`` (half of the items, drawn
again in each epoch)."""

from _expect import bug, fixed, same, same_calls, whole_run

ALL_ITEMS = list(range(16))


def shared_out(ranks):
    """True if each item belongs to exactly one rank in every epoch."""
    return all(sorted(sum(epoch, [])) == ALL_ITEMS for epoch in zip(*ranks))


def _ranks_overlap(result):
    epochs = [sum(epoch, []) for epoch in zip(*(rank["epochs"] for rank in result.observations))]
    return bool(epochs) and any(len(set(epoch)) < len(epoch) for epoch in epochs)


def _shared_out_anew(result):
    ranks = [rank["epochs"] for rank in result.observations]
    return len(ranks) == 2 and shared_out(ranks) and ranks[0][0] != ranks[0][1]


def _shared_out(result):
    return shared_out([rank["epochs"] for rank in result.observations])


EXPECT = [
    bug("shuffled", stock=whole_run(_ranks_overlap), patched=whole_run(_shared_out_anew)),
    fixed("seeded", "ranks seeded alike get the order of the later releases", alone=True),
    same("generator", "order with a custom seed is unchanged", whole_run(_shared_out), alone=True),
    same(
        "some",
        "limit of half the items is unchanged",
        whole_run(
            lambda result: [[len(epoch) for epoch in rank["epochs"]] for rank in result.observations] == [[4, 4]] * 2
        ),
        alone=True,
    ),
    same_calls(
        "samplers: overridden", "dataset with a custom sampler has no more length calls than on stock", on="2.0.2"
    ),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

ITEMS = TensorDataset(torch.arange(16.0).reshape(-1, 1))


def loader():
    if scenario.CASE == "generator":
        return DataLoader(ITEMS, batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(5))
    if scenario.CASE == "some":
        return DataLoader(ITEMS, batch_size=2, sampler=RandomSampler(ITEMS, num_samples=8))
    return DataLoader(ITEMS, batch_size=2, shuffle=True)


class Model(Linear):
    features, lr = 1, 0.01
    epochs = []

    def on_train_epoch_start(self):
        self.epochs.append([])

    def training_step(self, batch, batch_idx):
        self.epochs[-1] += [int(item) for item in batch[0].flatten()]
        return self.layer(batch[0]).mean()


if __name__ == "__main__":
    if scenario.CASE == "seeded":
        scenario.pl.seed_everything(7)
    else:
        torch.manual_seed(17 + scenario.rank())  # different in each rank, but the same in every variant
    model = Model()
    trainer = scenario.trainer(devices=2, strategy="ddp", max_epochs=2)
    trainer.fit(model, loader())
    scenario.observe(epochs=model.epochs)
