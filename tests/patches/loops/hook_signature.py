"""The parameters of a step. Counts how often ``inspect`` parses a step's signature. Cases: ``plain``, ``none`` (the
step has no ``batch_idx``), ``varargs``, ``keyword`` (``batch_idx`` by keyword only), ``static``, ``partial``,
``wrapped`` (functools.wraps), ``signature`` (with ``__signature__``), ``instance`` (a function on the object),
``loaders`` (two of them, with ``dataloader_idx``), ``iterator`` (``dataloader_iter``)."""

from _expect import bug, patched, same


def uncounted(observations):
    return [{**rank, "counted": None} for rank in observations]


EXPECT = [
    bug(
        "plain",
        stock=lambda seen: seen["counted"] > 4,
        compare=lambda ranks: [{**rank, "counted": rank["counted"] > 0} for rank in ranks],
        compare_like=lambda ranks: [{**rank, "counted": False} for rank in ranks],
    ),
    same(
        ["none", "varargs", "keyword", "loaders", "iterator"],
        "each step gets the arguments of stock",
        compare=uncounted,
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
    same(["partial", "wrapped", "signature"], "other steps are inspected as on stock", compare=uncounted, alone=True),
    patched(
        ["partial", "wrapped", "signature"], "other steps are inspected", lambda seen: seen["counted"] > 0, alone=True
    ),
    same("instance", "step on the instance is called as on stock", compare=uncounted, alone=True),
]

import functools
import inspect

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader, TensorDataset

case, seen, counted = scenario.CASE, [], []
getfullargspec = inspect.getfullargspec


def count(function):
    counted.append(1)
    return getfullargspec(function)


def forward(self, batch, **given):
    seen.append(sorted(given))
    loss = self.layer(batch[0]).mean()
    self.log("loss", loss, batch_size=1)
    return loss


class Model(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    if case == "none":

        def training_step(self, batch):
            return forward(self, batch)

    elif case == "varargs":

        def training_step(self, *args):
            return forward(self, args[0], **{f"positional {len(args)}": 1})

    elif case == "keyword":

        def training_step(self, batch, *, batch_idx=None):
            return forward(self, batch, batch_idx=batch_idx)

    elif case == "iterator":

        def training_step(self, dataloader_iter):
            batch, *others = next(dataloader_iter)
            return forward(self, batch[0] if isinstance(batch, tuple) else batch, **{f"others {len(others)}": 1})

    elif case == "wrapped":

        def step(self, batch, batch_idx):
            return forward(self, batch, batch_idx=batch_idx)

        @functools.wraps(step)
        def training_step(self, *args, **kwargs):
            return Model.step(self, *args, **kwargs)

    else:

        def training_step(self, batch, batch_idx):
            return forward(self, batch, batch_idx=batch_idx)

        if case == "signature":
            training_step.__signature__ = inspect.signature(lambda self, batch: None)

    if case == "loaders":

        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            seen.append(["loader", dataloader_idx])

    else:

        def validation_step(self, batch, batch_idx):
            seen.append(["validation", batch_idx])


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    if case == "partial":
        model.training_step = functools.partial(forward, model)
    elif case == "instance":
        model.training_step = lambda batch, batch_idx: forward(model, batch, batch_idx=batch_idx)
    loader = DataLoader(TensorDataset(torch.arange(8.0).reshape(4, 2)), batch_size=1)
    trainer = scenario.trainer(max_epochs=1)
    inspect.getfullargspec = count
    try:
        trainer.fit(model, loader, [loader, loader] if case == "loaders" else loader)
    except Exception as error:
        seen.append(f"{type(error).__name__}: {error}")
    inspect.getfullargspec = getfullargspec
    scenario.observe(seen=seen, counted=len(counted), weights=model.layer.weight)
