"""Two ranks, and a custom sampler that yields samples in reverse order. Cases: none, ``divides`` (it divides the
samples among the ranks, and Lightning does not replace it), ``torch`` (one of torch's, random), ``sequential`` (a
subclass of torch's), ``batches`` (it is inside a batch sampler)."""

from _expect import bug, patched, same, whole_run

KEPT = [{"seen": 2 * list(range(15 - rank, -1, -2))} for rank in range(2)]

EXPECT = [
    bug(
        stock=whole_run(
            lambda result: all((rank["seen"] != right["seen"] for rank, right in zip(result.observations, KEPT)))
        ),
        patched=whole_run(lambda result: [{"seen": rank["seen"]} for rank in result.observations] == KEPT),
        like="divides",
        compare="seen",
    ),
    same("torch", "sampler of torch is shuffled as on stock", alone=True),
    patched("", "warning is absent if the order is kept", [{"warnings": []}, {"warnings": []}]),
]

import _scenario as scenario
import torch
from torch.utils.data import BatchSampler, DataLoader, Sampler, SequentialSampler, SubsetRandomSampler

DIVIDES = scenario.CASE == "divides"


class Backwards(Sampler):
    def __init__(self):
        """In torch 1.13, the method of Sampler has a parameter."""

    def __iter__(self):
        every = range(15, -1, -1)
        return iter(every[scenario.rank() :: 2] if DIVIDES else every)

    def __len__(self):
        return 8 if DIVIDES else 16


class FromTheEnd(SequentialSampler):
    def __iter__(self):
        return iter(range(15, -1, -1))


class Batches(BatchSampler):
    pass


class Model(scenario.BoringModel):
    seen = []

    def training_step(self, batch, batch_idx):
        self.seen.extend(int(value) for value in batch[:, 0])
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    data = torch.arange(16.0)[:, None].repeat(1, 32)
    samplers = {"torch": SubsetRandomSampler(range(16)), "sequential": FromTheEnd(data)}
    sampler = samplers.get(scenario.CASE, Backwards())
    batches = {"batch_sampler": Batches(sampler, 4, False)} if scenario.CASE == "batches" else {}
    trainer = scenario.trainer(
        devices=2, strategy="ddp", max_epochs=2, limit_val_batches=0, use_distributed_sampler=not DIVIDES
    )
    with scenario.observing_warnings():
        trainer.fit(Model(), DataLoader(data, **(batches or {"batch_size": 4, "sampler": sampler})))
    scenario.observe(seen=Model.seen)
