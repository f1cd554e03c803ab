"""Number of iterations over the data in a resumed training. Cases: ``stream`` (an IterableDataset that continues at its
last position), ``shuffle`` (a shuffled training set), ``workers`` (a sampler with set_epoch, and a worker process),
``dropout`` (unshuffled data, and a model that draws random numbers), ``finder`` (the learning rate finder of
Lightning's documentation, which searches in a later epoch), ``reload`` (the stream, and data loaders that are created
anew in each epoch)."""

from _expect import bug, fixed, patched, same

EXPECT = [
    bug(["stream", "shuffle"], stock={"iterations": 3}),
    same("reload", "reloaded loader is started as in the uninterrupted run", on="2.2.5"),
    # The order of items for workers, and dropout with unshuffled data.
    fixed("workers", "random numbers after a resume equal the fixed release", compare="trained"),
    fixed("dropout", "random numbers after a resume equal the fixed release", compare="drawn"),
    *(
        patched("finder", "finder in a later epoch consumes no batches", {"trained": [*range(1, 9)] * 3}, toggle=toggle)
        for toggle in ("resume-single-iteration", "lr-finder-train-loader,resume-single-iteration")
    ),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset


class Stream(IterableDataset):
    """A stream of which every iterator takes the next four samples."""

    def __init__(self):
        self.iterations = self.position = 0

    def __iter__(self):
        self.iterations += 1
        for _ in range(4):
            self.position += 1
            yield torch.tensor([float(self.position)])


class Counting(DataLoader):
    iterations = 0

    def __iter__(self):
        self.iterations += 1
        return super().__iter__()


class Finder(scenario.pl.callbacks.LearningRateFinder):
    def on_fit_start(self, *args):
        pass

    def on_train_epoch_start(self, trainer, model):
        if trainer.current_epoch == 1:
            model.searching = True
            self.lr_find(trainer, model)
            model.searching = False


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.lr = 1e-4
        self.layer = torch.nn.Linear(1, 1)
        self.trained, self.drawn = [], []
        self.searching = False

    def training_step(self, batch, batch_idx):
        if not self.searching:
            self.trained.append(int(batch[0]))
            if scenario.CASE == "dropout":
                self.drawn.append(torch.nn.functional.dropout(torch.ones(32)).tolist())
        return self.layer(batch).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-4)


def data():
    if scenario.CASE in ("stream", "reload"):
        return DataLoader(Stream(), batch_size=1)
    if scenario.CASE == "workers":
        sampler = DistributedSampler(range(8), num_replicas=1, rank=0)
        return Counting(torch.arange(1.0, 9.0).reshape(8, 1), batch_size=1, sampler=sampler, num_workers=1)
    return Counting(torch.arange(1.0, 9.0).reshape(8, 1), batch_size=1, shuffle=scenario.CASE == "shuffle")


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    path = "saved.ckpt"
    if scenario.CASE == "finder":
        finder = Finder(max_lr=1e-3, num_training_steps=3, early_stop_threshold=None, update_attr=False)
        model, loader = Model(), data()
        trainer = scenario.trainer(max_epochs=3, callbacks=[finder])
        trainer.fit(model, loader)
        scenario.observe(trained=model.trained)
    else:
        trainer = scenario.trainer(max_epochs=1)
        trainer.fit(Model(), data())
        trainer.save_checkpoint(path)
        scenario.pl.seed_everything(4)
        model, loader = Model(), data()
        options = {"reload_dataloaders_every_n_epochs": 1} if scenario.CASE == "reload" else {}
        trainer = scenario.trainer(max_epochs=3, **options)
        trainer.fit(model, loader, ckpt_path=path)
        counted = loader.dataset if scenario.CASE in ("stream", "reload") else loader
        scenario.observe(
            iterations=counted.iterations, trained=model.trained, drawn=model.drawn, weight=model.layer.weight
        )
