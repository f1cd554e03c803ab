"""The storage does not permit a checkpoint to be written. Cases: ``save`` (``Trainer.save_checkpoint``), ``callback``
(ModelCheckpoint in a training), ``by-hand`` (the same file opened without Lightning), ``permitted`` (storage that lets
the file be written), ``local`` (the same, on the disk), ``azure`` (the same, a class of one's own on top of adlfs,
which from 2.6.5 on is not given the file in one piece)."""

from _expect import bug, same

DENIED = {
    "error": "PermissionError: [Errno 13] Access Denied: 'guarded://run/model.ckpt'",
    "written": False,
    "piped": [],
}
WRITTEN = {"error": None, "written": True, "piped": []}
LOST = {"error": None, "written": False, "piped": []}

EXPECT = [
    bug(["save", "callback"], stock=LOST, patched=DENIED, like="by-hand"),
    same("save", "release before the bug is unchanged", lambda seen: seen == DENIED, on="2.5.1"),
    same("permitted", "writable path is written", WRITTEN, on=("2.5.2", "2.6.6")),
    same("local", "local path is written", WRITTEN),
    same(
        "azure",
        "subclass of the azure file system is written as azure",
        lambda seen: seen == WRITTEN,
        on=("2.6.4", "2.6.6"),
    ),
]

import os
import sys
from pathlib import Path

import _scenario as scenario
import fsspec
from fsspec.implementations.memory import MemoryFileSystem

PIPED: list = []
"""The paths whose content the stand-in for Azure is given in one piece."""


class Guarded(MemoryFileSystem):
    """Storage that refuses writes like s3fs without permission."""

    protocol = "guarded"
    store = {}
    pseudo_dirs = [""]

    def _open(self, path, mode="rb", **options):
        if "w" in mode:
            raise PermissionError(13, "Access Denied", path)
        return super()._open(path, mode, **options)


def azure():
    """A stand-in for adlfs, and a file system that derives from its class."""
    directory = Path.cwd()
    base = "from fsspec.implementations.memory import MemoryFileSystem"
    directory.joinpath("adlfs.py").write_text(f"{base}\nclass AzureBlobFileSystem(MemoryFileSystem): pass\n")
    sys.path.insert(0, str(directory))
    import adlfs

    class Lake(adlfs.AzureBlobFileSystem):
        protocol, store, pseudo_dirs = "lake", {}, [""]

        def pipe(self, path, value=None, **options):
            PIPED.append(path)
            return super().pipe(path, value, **options)

    fsspec.register_implementation("lake", Lake, clobber=True)
    return "lake://run"


if __name__ == "__main__":
    fsspec.register_implementation("guarded", Guarded, clobber=True)
    model = scenario.BoringModel()
    directories = {"permitted": lambda: "memory://run", "local": lambda: os.getcwd(), "azure": azure}
    directory = directories.get(scenario.CASE, lambda: "guarded://run")()
    path = f"{directory}/model.ckpt"
    options = {"accelerator": "cpu", "max_steps": 2, "limit_val_batches": 0}
    error = None
    try:
        if scenario.CASE == "by-hand":
            with fsspec.open(path, "wb") as file:
                file.write(b"weights")
        elif scenario.CASE == "callback":
            callback = scenario.pl.callbacks.ModelCheckpoint(dirpath=directory, filename="model")
            scenario.trainer(**options, callbacks=callback).fit(model)
        else:
            trainer = scenario.trainer(**options)
            trainer.fit(model)
            trainer.save_checkpoint(path)
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    fs, place = fsspec.core.url_to_fs(path)
    scenario.observe(error=error, written=fs.exists(place), piped=PIPED)
