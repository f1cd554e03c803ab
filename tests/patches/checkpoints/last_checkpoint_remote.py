"""With checkpoints on a remote file system, ckpt_path="last" starts from the beginning. Cases: ``memory``, ``explicit``
(the whole path of the checkpoint), ``local`` (on the disk), ``none`` (there is no last checkpoint), ``timeless`` (a
file system that does not know when a file was modified), ``workaround`` (a subclass finds the files)."""

from _expect import bug, same

EXPECT = [
    bug("memory", stock={"steps": list(range(8))}, patched={"steps": [4, 5, 6, 7]}, like="explicit"),
    same(
        ["local", "workaround"],
        "found checkpoint is resumed as on stock",
        lambda seen: seen["steps"][0] == 4,
        on=("2.1.0", "2.6.6"),
    ),
    same(
        ["none", "timeless"],
        "run without a checkpoint starts as on stock",
        lambda seen: seen["steps"][0] == 0,
        on=("2.1.0", "2.6.6"),
    ),
]

import _scenario as scenario
import fsspec
from fsspec.implementations.memory import MemoryFileSystem

CASE = scenario.CASE


class Timeless(MemoryFileSystem):
    protocol = "timeless"
    store, pseudo_dirs = {}, [""]
    modified = fsspec.AbstractFileSystem.modified


fsspec.register_implementation("timeless", Timeless)


class Saving(scenario.pl.callbacks.ModelCheckpoint):
    def _find_last_checkpoints(self, trainer):
        return {f"memory:/{path}" for path in super()._find_last_checkpoints(trainer)}


def directory():
    if CASE == "local":
        return "checkpoints"
    return f"{'timeless' if CASE == 'timeless' else 'memory'}://bucket/runs/"


def trainer(epochs):
    kind = Saving if CASE == "workaround" else scenario.pl.callbacks.ModelCheckpoint
    saving = kind(directory(), filename="{epoch}", save_last=CASE != "none", save_top_k=-1)
    return scenario.trainer(max_epochs=epochs, limit_train_batches=4, limit_val_batches=0, callbacks=saving)


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.steps = []

    def training_step(self, batch, batch_idx):
        self.steps.append(self.global_step)
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    trainer(1).fit(Model())
    model, path = Model(), directory() + "last.ckpt" if CASE == "explicit" else "last"
    trainer(2).fit(model, ckpt_path=path)
    scenario.observe(steps=model.steps, weight=model.layer.weight)
