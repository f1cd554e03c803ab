"""Every rank queries the storage at each save, and an object is broadcast to agree on the answer. Cases: ``denied``
(only rank zero may use the storage), ``asked`` (number of queries per rank), ``version`` (two fits save under the same
name), ``own-broadcast`` (rank 1 of a strategy with a custom broadcast), ``proxy`` (the same behind a proxy object),
``property`` (the same from a Trainer that overrides ``strategy``)."""

from _expect import bug, fixed, same, whole_run


def is_denied(result):
    return not result.ok and "PermissionError: rank 1 has no access to bucket://checkpoints/best" in result.output


def _finds_the_first(result):
    """True if the second fit finds the first one's file, and adds a version to the name, in every rank."""
    first, second = result.observations[0]["names"]
    return result.observations[1]["names"] == [first, second] and "-v" in second and first != second


EXPECT = [
    bug("denied", stock=whole_run(is_denied), patched=[{"saved": True}, {"saved": True}]),
    fixed("asked", "only rank zero queries the file system", stock=[{"questions": 2}, {"questions": 2}]),
    same(
        ["own-broadcast", "proxy", "property"],
        "custom broadcast of a strategy is called",
        {"exists": True},
        on=("2.0.9", "2.5.6"),
    ),
    same("version", "all ranks get the name", whole_run(_finds_the_first), alone=True, on=("2.1.0", "2.5.6")),
]

import os

import _scenario as scenario
import fsspec
import torch
from fsspec.implementations.memory import MemoryFileSystem

ModelCheckpoint = scenario.pl.callbacks.ModelCheckpoint


class Bucket(MemoryFileSystem):
    protocol = "bucket"
    questions = 0

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("bucket://", "memory://"))

    def exists(self, path, **options):
        if path.endswith(".ckpt"):
            Bucket.questions += 1
            if scenario.CASE == "denied" and scenario.rank() != 0:
                raise PermissionError(f"rank {scenario.rank()} has no access to {path}")
        return super().exists(path, **options)


def fit():
    fsspec.register_implementation("bucket", Bucket, clobber=True)
    callback = ModelCheckpoint(dirpath="bucket://checkpoints", filename="best", every_n_train_steps=1, save_top_k=1)
    trainer = scenario.trainer(devices=2, strategy="ddp", callbacks=[callback], max_steps=2, limit_val_batches=0)
    trainer.fit(scenario.BoringModel())
    return os.path.basename(callback.best_model_path)


class OwnBroadcast(scenario.pl.strategies.SingleDeviceStrategy):
    """Simulates a rank other than zero: the broadcast says that the file exists."""

    is_global_zero = False

    def broadcast(self, obj, src=0):
        return True if obj is False else obj


class Proxy:
    def __init__(self, behind):
        self._behind = behind

    def __getattr__(self, name):
        return getattr(self._behind, name)


def ask_own_strategy():
    strategy = OwnBroadcast(device=torch.device("cpu"))
    given = "ddp" if scenario.CASE == "property" else strategy
    trainer = scenario.trainer(strategy=given, enable_checkpointing=True)
    if scenario.CASE == "proxy":
        trainer._accelerator_connector.strategy = Proxy(strategy)
    elif scenario.CASE == "property":
        trainer.__class__ = type("OwnTrainer", (type(trainer),), {"strategy": property(lambda self: strategy)})
    scenario.observe(exists=trainer.checkpoint_callback.file_exists("nowhere.ckpt", trainer))


if __name__ == "__main__":
    if scenario.CASE in ("own-broadcast", "proxy", "property"):
        ask_own_strategy()
        raise SystemExit
    names = [fit() for _ in range(2 if scenario.CASE == "version" else 1)]
    if scenario.CASE == "denied":
        scenario.observe(saved=bool(names[0]))
    elif scenario.CASE == "asked":
        scenario.observe(questions=Bucket.questions)
    else:
        scenario.observe(names=names)
