"""trainer.predict refuses a batch sampler whose constructor differs from torch's. Cases: ``own``, a custom class;
``sub``, a subclass of torch's without its attributes; ``like``, one with torch's constructor; ``torch``, torch's;
``ranks``, a custom class with two ranks."""

from _expect import bug, patched, same, whole_run


def _is_refused(result):
    said = ("has no attribute 'batch_size'", "can't inject a (distributed) sampler into your batch sampler")
    return not result.ok and any(line in result.output for line in said)


EXPECT = [
    bug(
        ["own", "sub"],
        stock=whole_run(_is_refused),
        patched={"predicted": [[0, 3, 6], [1, 4]], "indices": [[0, 3, 6], [1, 4]]},
    ),
    same(["like", "torch"], "other loaders are unchanged", alone=True),
    patched(
        "ranks", "custom batch sampler on several ranks is refused as on stock", whole_run(_is_refused), alone=True
    ),
]

import _scenario as scenario
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

boring = scenario.pytorch("demos.boring_classes")


class Own:
    """A batch sampler that yields pairs."""

    def __init__(self, *args, **kwargs):
        self.groups = [[0, 3, 6], [1, 4]]

    def __iter__(self):
        return iter(self.groups)

    def __len__(self):
        return len(self.groups)


class Derived(Own, BatchSampler):
    pass


class Like(BatchSampler):
    """A subclass of torch's that yields the last batch first."""

    def __iter__(self):
        return iter(list(super().__iter__())[::-1])


class Model(boring.BoringModel):
    def predict_step(self, batch, batch_idx):
        return batch.flatten().int()


class Writer(scenario.pl.callbacks.BasePredictionWriter):
    """A callback that reads the indices of each batch."""

    def __init__(self):
        super().__init__("batch")
        self.indices = []

    def write_on_batch_end(self, trainer, model, prediction, batch_indices, *_):
        self.indices.append(batch_indices)


if __name__ == "__main__":
    like = {"like": Like, "torch": BatchSampler}.get(scenario.CASE)
    batch_sampler = (
        like(SequentialSampler(range(7)), 3, drop_last=True) if like else (Derived if scenario.CASE == "sub" else Own)()
    )
    data = torch.arange(7.0).reshape(-1, 1)
    writer = Writer()
    trainer = scenario.trainer(
        callbacks=writer,
        devices=2 if scenario.CASE == "ranks" else 1,
        strategy="ddp_fork" if scenario.CASE == "ranks" else "auto",
    )
    found = trainer.predict(Model(), DataLoader(data, batch_sampler=batch_sampler))
    scenario.observe(predicted=[batch.tolist() for batch in found], indices=writer.indices)
