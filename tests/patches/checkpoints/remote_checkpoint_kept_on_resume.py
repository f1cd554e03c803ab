"""In a resumed run with checkpoints on a remote file system, ModelCheckpoint removes old files. CASE "keep-all": the
resumed runs keep all of their checkpoints. CASE "own-scheme": they are resumed from a place that only the program's
CheckpointIO knows. The file system is fsspec's in memory."""

from _expect import bug, patched, same, same_calls

EXPECT = [
    bug(
        stock=lambda seen: not seen["old"] and (not seen["resumed_from_exists"]),
        patched=lambda seen: (seen["new"], seen["same_directory"]) == (["epoch=2.ckpt"], [*seen["old"], *seen["new"]]),
        like="keep-all",
        compare=("old", "resumed_from_exists"),
    ),
    same(
        "keep-all",
        "files are unchanged if every checkpoint is kept",
        lambda seen: seen["old"] == ["epoch=0.ckpt"] and seen["resumed_from_exists"],
    ),
    # fsspec does not know the scheme, so it must not be called with this path.
    patched("own-scheme", "checkpoint with a custom scheme is kept", {"old": ["epoch=0.ckpt"]}, on=("2.0.9", "2.6.6")),
    same(
        "own-scheme",
        "other files with a custom scheme are unchanged",
        {"same_directory": ["epoch=2.ckpt"], "new": ["epoch=2.ckpt"]},
        compare=("same_directory", "new"),
        on=("2.0.9", "2.6.6"),
    ),
    same_calls("remote", "subclass with another directory removes files as on stock"),
]

import _scenario as scenario
import fsspec
import torch
from _model import Linear
from torch.utils.data import DataLoader

ModelCheckpoint = scenario.pl.callbacks.ModelCheckpoint


class Registry(scenario.pytorch("plugins.io").TorchCheckpointIO):
    def load_checkpoint(self, path, *args, **kwargs):
        return super().load_checkpoint(str(path).replace("models://", "memory://"), *args, **kwargs)


class Model(Linear):
    def training_step(self, batch, batch_idx):
        self.log("score", float(self.current_epoch))
        return self.layer(batch).sum()


def fit(directory, epochs, resume=None, monitor=None):
    callback = ModelCheckpoint(
        dirpath=f"memory://{directory}",
        filename="{epoch}",
        monitor=monitor,
        mode="max",
        save_top_k=-1 if resume and scenario.CASE == "keep-all" else 1,
    )
    own = {}
    if scenario.CASE == "own-scheme":
        own["plugins"] = [Registry()]
        resume = resume and resume.replace("memory://", "models://")
    trainer = scenario.trainer(callbacks=[callback], max_epochs=epochs, **own)
    trainer.fit(Model(), DataLoader(torch.rand(2, 2)), ckpt_path=resume)
    return callback.best_model_path


def files(directory):
    return sorted(path.rpartition("/")[2] for path in fsspec.filesystem("memory").ls(f"/{directory}", detail=False))


if __name__ == "__main__":
    first = fit("old", 1)
    fit("new", 3, resume=first)
    scenario.observe(old=files("old"), new=files("new"))

    first = fit("best", 1, monitor="score")
    fit("best", 3, resume=first, monitor="score")
    scenario.observe(resumed_from_exists="epoch=0.ckpt" in files("best"), same_directory=files("best"))
