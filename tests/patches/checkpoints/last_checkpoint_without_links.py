"""last.ckpt must be a link, but the file system refuses links. Cases: ``folder`` (the checkpoint is a directory),
``links`` (they are not refused)."""

from _expect import bug, patched, same

COPY = {"link": False, "step": 2}

EXPECT = [
    bug(stock="Operation not permitted", patched=COPY),
    same("links", "last checkpoint is a link if links are supported", {"link": True, "step": 2}, on="2.1.0"),
    patched("folder", "folder of the last checkpoint is a copy", COPY),
    patched(
        "", "last checkpoint is a copy if relative links fail", COPY, toggle="default,last-checkpoint-link-relative"
    ),
]

import os
import shutil

import _scenario as scenario
import fsspec.implementations.local
import torch

# 2.1.0 to 2.1.2 create links only with an older fsspec, which has this attribute.
fsspec.implementations.local.LocalFileSystem.protocol = "file"


def refuse(*args, **kwargs):
    raise OSError(1, "Operation not permitted")


class Folders(scenario.fabric("plugins.io.torch_io").TorchCheckpointIO):
    def save_checkpoint(self, checkpoint, path, storage_options=None):
        shutil.rmtree(path, ignore_errors=True)
        super().save_checkpoint(checkpoint, os.path.join(path, "all.ckpt"))


if __name__ == "__main__":
    if scenario.CASE != "links":
        os.symlink = refuse
    callback = scenario.pl.callbacks.ModelCheckpoint(".", "{step}", save_last=True)
    trainer = scenario.trainer(
        max_epochs=2,
        limit_train_batches=1,
        limit_val_batches=0,
        callbacks=callback,
        plugins=[Folders()] if scenario.CASE == "folder" else [],
    )
    trainer.fit(scenario.BoringModel())
    file = "last.ckpt/all.ckpt" if scenario.CASE == "folder" else "last.ckpt"
    scenario.observe(link=os.path.islink("last.ckpt"), step=torch.load(file, weights_only=False)["global_step"])
