"""A DataLoader that a hook creates with positional arguments. Cases: ``predict``, ``ranks`` (fit on two CPU ranks),
``own`` (predict with a subclass that takes any positional arguments). With ``named``, the arguments have names."""

from _expect import bug, same

ERROR = "The {} implementation has an error where more than one `__init__` argument"

EXPECT = [
    bug("predict", stock=ERROR.format("DataLoader"), like="predict, named"),
    bug("ranks", stock=ERROR.format("DataLoader"), like="ranks, named"),
    same("own", "subclass with variable arguments is unchanged", ERROR.format("Own"), on=("2.0.0", "2.6.6")),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

KIND, _, REST = scenario.CASE.partition(", ")


class Own(DataLoader):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)


class Model(scenario.boring_model()):
    def __init__(self):
        super().__init__()
        self.seen = []

    def loader(self):
        if REST == "named":
            return DataLoader(torch.eye(32)[:8], batch_size=2, shuffle=True)
        return (Own if KIND == "own" else DataLoader)(torch.eye(32)[:8], 2, *[True] * (KIND != "own"))

    train_dataloader = predict_dataloader = loader

    def training_step(self, batch, batch_idx):
        self.seen += batch.argmax(1).tolist()
        return self.layer(batch).mean()

    def predict_step(self, batch, *_):
        self.seen.append(len(batch))


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    with scenario.observing_errors():
        if KIND == "ranks":
            trainer = scenario.trainer(devices=2, strategy="ddp", max_epochs=1, limit_val_batches=0)
            trainer.fit(model)
        else:
            scenario.trainer(devices=1).predict(model)
    scenario.observe(seen=model.seen)
