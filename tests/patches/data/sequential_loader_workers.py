"""With several validation DataLoaders, the workers of all of them run at once. Cases: ``validate``, ``predict``,
``loader`` (only a sequential CombinedLoader), and one without the bug: ``batches`` (origin of the batches, with limits,
an empty loader and one without a length)."""

from _expect import bug, same

EXPECT = [
    bug(["validate", "predict", "loader"], stock=lambda seen: seen["workers"][0] == 3, patched={"workers": [1, 1, 1]}),
    same("batches", "batches are unchanged"),
    same("validate", "only the number of workers differs", {"workers": [3, 3, 3]}, compare="batches"),
]

import multiprocessing

import _scenario as scenario
import torch

boring = scenario.pytorch("demos.boring_classes")


class Endless(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(100, 103))


class Model(boring.BoringModel):
    def __init__(self):
        super().__init__()
        self.workers, self.batches = [], []

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        self.batches.append([dataloader_idx, batch_idx, batch.tolist()])
        if batch_idx == 0:
            self.workers.append(len(multiprocessing.active_children()))

    predict_step = validation_step


def loaders():
    return [torch.utils.data.DataLoader(range(10 * n, 10 * n + 4), num_workers=1) for n in range(3)]


def counted():
    combined = scenario.pytorch("utilities.combined_loader").CombinedLoader(loaders(), "sequential")
    found = []
    for _, batch_idx, _ in combined:
        if batch_idx == 0:
            found.append(len(multiprocessing.active_children()))
    return found


if __name__ == "__main__":
    trainer = scenario.trainer(limit_val_batches=3, limit_predict_batches=3)
    model = Model()
    if scenario.CASE == "loader":
        scenario.observe(workers=counted())
    elif scenario.CASE == "batches":
        data = torch.utils.data.DataLoader
        for method, given in (
            (trainer.validate, [data(range(5)), data(range(10, 12)), data(Endless()), data(range(20, 21))]),
            (trainer.predict, [data(range(2)), [torch.tensor([1])], data(range(10, 12), batch_size=2)]),
        ):
            method(model, given)
            method(model, given)
        scenario.observe(batches=model.batches)
    else:
        getattr(trainer, scenario.CASE)(model, loaders())
        scenario.observe(workers=model.workers, batches=model.batches)
