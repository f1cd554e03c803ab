"""trainer.predict refuses a subclass of torch's BatchSampler that has another constructor. Cases: none; ``more`` (the
constructor needs one more argument); ``hook`` (the loader is made in predict_dataloader); ``accepts`` (the constructor
also accepts torch's arguments); ``broken`` (reading the batch sampler raises a TypeError); ``ranks`` (two ranks)."""

from _expect import bug, patched, same, whole_run

REFUSALS = (
    "__init__() got an unexpected keyword argument",
    "__init__() missing 1 required positional argument",
    "does not have an argument called `sampler.`",
)


def _is_refused(result):
    return not result.ok and any(line in result.output for line in REFUSALS)


EXPECT = [
    bug(
        ["", "more", "hook"],
        stock=whole_run(_is_refused),
        patched={"predicted": [[0, 3, 6], [1, 4]], "indices": [[0, 3, 6], [1, 4]]},
        like="accepts",
    ),
    same("accepts", "batch sampler with the arguments of torch is unchanged", alone=True),
    patched("broken", "error of the batch sampler is shown", "TypeError: the batches broke", alone=True),
    patched("ranks", "batch sampler on several ranks is refused as on stock", whole_run(_is_refused), alone=True),
]

import _scenario as scenario
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

CASE = scenario.CASE
GROUPS = ([0, 3, 6], [1, 4])


class Groups(BatchSampler):
    def __init__(self, groups):
        super().__init__(SequentialSampler(range(7)), 3, False)
        self.groups = groups

    def __iter__(self):
        if CASE == "broken":
            raise TypeError("the batches broke")
        return iter(self.groups)

    def __len__(self):
        return len(self.groups)


class Accepting(Groups):
    def __init__(self, sampler=None, batch_size=3, drop_last=False, groups=GROUPS):
        super().__init__(groups)


class More(Groups):
    def __init__(self, sampler, batch_size, drop_last, groups):
        super().__init__(groups)


def loader():
    made = {"accepts": Accepting, "more": lambda: More(None, 3, False, GROUPS)}.get(CASE, lambda: Groups(GROUPS))
    return DataLoader(torch.arange(7.0).reshape(-1, 1), batch_sampler=made())


class Model(scenario.BoringModel):
    def predict_step(self, batch, batch_idx):
        return batch.flatten().int()

    if CASE == "hook":

        def predict_dataloader(self):
            return loader()


class Writer(scenario.pl.callbacks.BasePredictionWriter):
    def __init__(self):
        super().__init__("batch")
        self.indices = []

    def write_on_batch_end(self, trainer, model, prediction, batch_indices, *_):
        self.indices.append(batch_indices)


if __name__ == "__main__":
    writer = Writer()
    ranks = {"devices": 2, "strategy": "ddp_fork"} if CASE == "ranks" else {"devices": 1}
    found = scenario.trainer(callbacks=writer, **ranks).predict(Model(), None if CASE == "hook" else loader())
    scenario.observe(predicted=[batch.tolist() for batch in found], indices=writer.indices)
