"""An error while the training DataLoader starts is replaced by a second, misleading one. One run has several failures,
each with a new Trainer. Runs on the CPU."""

from _expect import bug, same

HIDDEN = ("workers", "several_loaders", "dataloader_iter")


def _masked(observations):
    """Return the errors that stock hides, and the unchanged ones."""
    return [[rank[way] for way in HIDDEN] + [rank["none"], rank["again"]] for rank in observations]


def _unmasked(observations):
    """Return the same for the recommended usage: the same error in the validation loader, which stock shows."""
    return [
        [rank["validation"]] * 3
        + [rank["none"], {**rank["again"], "first": rank["validation"]["error"].partition(":")[0]}]
        for rank in observations
    ]


EXPECT = [
    bug(
        stock=lambda seen: "Please call `iter(combined_loader)` first." in (seen["workers"]["error"] or ""),
        compare=_masked,
        compare_like=_unmasked,
    ),
    same(
        "",
        "visible errors are unchanged",
        compare=lambda ranks: {way: seen for way, seen in ranks[0].items() if way not in (*HIDDEN, "again")},
    ),
]

import signal
import threading

import _scenario as scenario
import torch
from _model import Linear, mean_square
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.tensor([float(index)])


class Locked(Numbers):
    """Cannot be sent to a worker process."""

    def __init__(self):
        self.lock = threading.Lock()


class NoServer:
    """A user's own iterable, of known or unknown length, that cannot be started."""

    def __iter__(self):
        raise ConnectionError("the data server is down")


class NoServerSized(NoServer):
    def __len__(self):
        return 4


class Model(Linear):
    loss = staticmethod(mean_square)
    features = 1

    def validation_step(self, batch, batch_idx):
        return self.layer(batch).pow(2).mean()


class Fetching(Model):
    def training_step(self, dataloader_iter):
        return self.layer(next(dataloader_iter)[0]).pow(2).mean()


class Listener(scenario.pl.Callback):
    def __init__(self):
        self.told = []

    def on_exception(self, trainer, pl_module, exception):
        self.told.append(type(exception).__name__)


def good():
    return DataLoader(Numbers(), 2)


def unpicklable():
    return DataLoader(Locked(), 2, num_workers=1, multiprocessing_context="spawn")


def handlers():
    return {int(number): repr(signal.getsignal(number)) for number in signal.valid_signals()}


def attempt(train, val=None, model=Model):
    before, listener, error = handlers(), Listener(), None
    trainer = scenario.trainer(max_epochs=1, callbacks=[listener], num_sanity_val_steps=0)
    try:
        trainer.fit(model(), train, val)
    except Exception as exception:
        error = f"{type(exception).__name__}: {exception}"
    after = handlers()
    hijacked = sorted(number for number in before if before[number] != after[number])
    for number in hijacked:  # reset them for the next attempt
        signal.signal(number, signal.SIG_DFL)
    status, stage = trainer.state.status, trainer.state.stage
    return {
        "error": error,
        "callbacks_told": listener.told,
        "hijacked_signals": hijacked,
        "status": str(getattr(status, "value", status)),
        "stage": stage if stage is None else str(getattr(stage, "value", stage)),
    }


def again():
    """Use a Trainer whose first fit fails for a second one."""
    trainer = scenario.trainer(max_epochs=1, limit_train_batches=2)
    model, error = Model(), None
    try:
        trainer.fit(model, unpicklable())
    except Exception as exception:
        error = type(exception).__name__
    trainer.fit(model, good())
    return {"first": error, "steps": trainer.global_step, "status": str(trainer.state.status.value)}


if __name__ == "__main__":
    scenario.observe(
        workers=attempt(unpicklable()),
        iterable=attempt(NoServer()),
        sized_iterable=attempt(NoServerSized()),
        several_loaders=attempt([good(), unpicklable()]),
        dataloader_iter=attempt(unpicklable(), model=Fetching),
        validation=attempt(good(), unpicklable()),
        none=attempt(good(), good()),
        again=again(),
    )
