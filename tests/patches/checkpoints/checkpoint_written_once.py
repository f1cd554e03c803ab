"""Memory and disk space for writing a checkpoint of 256 MiB. Cases: ``save`` (``Trainer.save_checkpoint``), ``by-hand``
(``torch.save`` of the same into the same directory), ``fails`` (an object that cannot be pickled, over an existing
checkpoint), ``link`` (the name is a link to another file), ``mode`` (the umask), ``fabric``, ``mount`` (issue 20270:
with a contemporary fsspec, another device than TMPDIR, which refuses permissions)."""

from _expect import bug, fixed, patched, same


def _written_once(observations):
    return [{**rank, "copied": False, "staged": False, "mode": ""} for rank in observations]


TOGGLE = "1,checkpoint-written-once"

EXPECT = [
    bug(
        "save",
        stock=lambda seen: seen["copied"] and seen["staged"],
        like="by-hand",
        compare=("error", "copied", "staged", "whole", "there"),
    ),
    # An error keeps the old file and leaves no other; links, permissions and Fabric.
    same(
        ["fails", "link", "mode", "fabric"],
        "other saves are unchanged",
        compare=lambda ranks: [{**rank, "staged": None} for rank in ranks],
        toggle=TOGGLE,
    ),
    same("mode", "release without staging is unchanged", toggle=TOGGLE, on="2.3.3"),
    fixed(
        "save",
        "checkpoint is written without copies",
        stock={"copied": True, "staged": True},
        patched={"copied": False, "staged": False},
        like="by-hand",
        compare=_written_once,
        toggle=TOGGLE,
        on=("2.4.0", "2.6.6"),
    ),
    # PR 20780.
    fixed(
        "mount",
        "checkpoint is saved on a mount without permissions",
        stock={"error": "PermissionError"},
        patched={"error": None},
        toggle=TOGGLE,
        on="2.5.1",
    ),
    patched(
        "fails",
        "checkpoint that cannot be pickled raises",
        lambda seen: seen["error"] in ("AttributeError", "PicklingError"),
        toggle=TOGGLE,
    ),
]

import errno
import gc
import os
import resource
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import _scenario as scenario
import fsspec.implementations.local
import torch

OUT = Path.cwd()
MIB = 256 if scenario.CASE in ("save", "by-hand") else 1


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.register_buffer("ballast", torch.ones(MIB, 2**18))

    def on_save_checkpoint(self, checkpoint):
        if scenario.CASE == "fails" and path.exists():
            checkpoint["object"] = lambda: None


def mount(directory):
    """Simulate a mount: another device, with a file system that has no permissions."""
    rename, chmod = os.rename, os.chmod

    def within(source, target):
        if str(target).startswith(str(directory)) != str(source).startswith(str(directory)):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target)

    def refuse(path, *args, **kwargs):
        if str(path).startswith(str(directory)):
            raise PermissionError(errno.EPERM, "Operation not permitted", str(path))
        chmod(path, *args, **kwargs)

    os.rename = os.replace = within
    os.chmod = refuse
    fsspec.implementations.local.LocalFileOpener.commit = lambda self: shutil.move(self.temp, self.path)


def peak():
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    os.umask(0o027)
    tempfile.tempdir = str(OUT / "tmp")
    (OUT / "tmp").mkdir()
    (OUT / "run").mkdir()
    path = OUT / "run" / "model.ckpt"
    opened = []
    sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
    model = Model()
    trainer = scenario.trainer(max_steps=1, limit_val_batches=0)
    trainer.fit(model)
    content = trainer._checkpoint_connector.dump_checkpoint() if scenario.CASE == "by-hand" else None
    if scenario.CASE == "link":
        (OUT / "run" / "elsewhere.ckpt").write_bytes(b"other")
        path.symlink_to(OUT / "run" / "elsewhere.ckpt")
    if scenario.CASE == "mount":
        mount(path.parent)
    gc.collect()
    opened.clear()
    before, error = peak(), None
    try:
        if scenario.CASE == "by-hand":
            torch.save(content, path)
        elif scenario.CASE == "fabric":
            scenario.fabric().Fabric(accelerator="cpu", devices=1).save(path, {"model": model})
        else:
            trainer.save_checkpoint(path)
            if scenario.CASE == "fails":
                trainer.save_checkpoint(path)
    except Exception as caught:
        error = type(caught).__name__
    copied = peak() - before > MIB / 2
    loaded = torch.load(path, weights_only=False)
    scenario.observe(
        error=error,
        copied=MIB > 1 and copied,
        staged=any(name.startswith(str(OUT / "tmp")) for name in opened),
        whole=(loaded["model"] if scenario.CASE == "fabric" else loaded["state_dict"])["ballast"].shape,
        there=sorted(file.name for file in (OUT / "run").iterdir()),
        link=path.is_symlink(),
        mode=oct(stat.S_IMODE(path.stat().st_mode)),
    )
