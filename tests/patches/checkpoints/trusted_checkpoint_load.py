"""PR 20010: a checkpoint whose hyperparameters contain an object of a custom class, loaded with torch 2.6 or later.

CASE "untrusted": the script does not trust the directory. CASE "link-out": the loaded file is a link in the trusted
directory to a file elsewhere. CASE "link-in": a link elsewhere to a file in the directory. CASE "neighbour": the name
of the file's directory starts with that of the trusted one. CASE "ways": the same file with Fabric, as a datamodule's
checkpoint, and as an open file. CASE "asked": weights_only=True is passed (since 2.6.0). CASE "best" and "last":
ckpt_path is that word, for a checkpoint that others have written; "-untrusted": and the script does not trust the
directory. CASE "opened": the directory became world-writable after it was trusted. CASE "forced": torch's variable
forbids objects. CASE "memory": the checkpoint went through a BytesIO. CASE "names": the name of its class has control
characters.
"""

from _expect import bug, patched, same, whole_run

REFUSED = "Weights only load failed"

LOADED = {"fabric": 3, "data": 3, "loaded": 3, "resumed": 6, "warnings": []}
RELEASES = ("2.0.0", "2.2.5", "2.6.6")


def refuses(*words, without=()):
    """Return a check that the file is refused, with one hint that has these words."""

    def is_refused(result):
        (hint,) = result.observations[0]["warnings"]
        return (
            not result.ok
            and REFUSED in result.output
            and not {"loaded", "Options"} & {*result.observations[0]}
            and all(word in hint for word in words)
            and not any(word in hint for word in without)
        )

    return whole_run(is_refused)


EXPECT = [
    bug(
        stock=REFUSED,
        like="",
        compare=("loaded", "resumed"),
        like_variables=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
        since="1.9.0",
    ),
    patched("ways", "checkpoint in a trusted directory loads", LOADED, on=("2.0.0", "2.3.3", "2.6.0", "2.6.6")),
    patched("best", "file of another user loads from a trusted directory", [{"best": 1, "warnings": []}], on=RELEASES),
    patched("last", "file of another user loads from a trusted directory", [{"last": 4, "warnings": []}], on=RELEASES),
    patched(["best-untrusted", "last-untrusted"], "file of another user is refused elsewhere", REFUSED, on=RELEASES),
    patched(
        ["untrusted", "link-out", "neighbour"],
        "other files are refused as on stock",
        refuses(
            "trust_checkpoints(directory)", "add_safe_globals", "__main__.Options", ".ckpt", without=("weights_only",)
        ),
        on=("2.3.3", "2.6.6"),
    ),
    patched(
        "asked",
        "explicit weights_only is respected",
        whole_run(lambda result: not result.ok and REFUSED in result.output and not result.observations[0]["warnings"]),
    ),
    same(
        "memory",
        "error of what is no file is unchanged",
        REFUSED,
        compare=("error", "position"),
        on=("2.3.3", "2.6.6"),
    ),
    patched(
        "memory",
        "hint for what is no file names no directory",
        refuses("__main__.Options", "add_safe_globals", without=("directory",)),
        on=("2.3.3", "2.6.6"),
    ),
    patched(
        "names",
        "names from the file are printed without control characters",
        refuses("Opt\\x1b[2Jions", without=("\x1b",)),
    ),
    patched("link-in", "link to a trusted file loads", {}, on="2.3.3"),
    patched(
        "opened", "file that others can write is refused at load time", refuses("chmod o-w"), on=("2.3.3", "2.6.6")
    ),
    patched("forced", "forced file that others can write is refused", refuses(without=("chmod o-w",))),
]

import io
import os
import sys
from pathlib import Path

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader

OUT = Path.cwd()


class Options:
    width = 3


class Model(Module):
    def __init__(self, options):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(options.width, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def validation_step(self, batch, batch_idx):
        self.log("loss", self.layer(batch).sum())


class Data(scenario.pl.LightningDataModule):
    def __init__(self, options):
        super().__init__()
        self.save_hyperparameters()


def trust(directory):
    """Trust the directory, with the function of the package or of a fork."""
    if "lightning_patches" in sys.modules:
        sys.modules["lightning_patches"].trust_checkpoints(directory)
    else:
        cloud_io = scenario.fabric("utilities.cloud_io")
        getattr(cloud_io, "trusted_directories", []).append(str(directory))


def fit(epochs, **options):
    trainer = scenario.trainer(max_epochs=epochs)
    trainer.fit(Model(Options()), DataLoader(torch.rand(2, 3)), **options)
    return trainer


def ask_for(word, directory):
    """Write the best and last checkpoint, let others replace them, and continue the run."""
    data = DataLoader(torch.rand(2, 3))

    def saving(epochs):
        keeps = scenario.pl.callbacks.ModelCheckpoint(directory, "best", monitor="loss", save_last=True)
        return scenario.trainer(max_epochs=epochs, callbacks=keeps)

    first, second = saving(1), saving(2)
    first.fit(Model(Options()), data, data)
    path = directory / f"{word}.ckpt"
    torch.save({**torch.load(path, weights_only=False), "of_others": Options()}, path)
    if word == "best":
        scenario.observe(best=len(first.validate(Model(Options()), data, ckpt_path=word, verbose=False)))
    else:
        second.fit(Model(Options()), data, data, ckpt_path=word)
        scenario.observe(last=second.global_step)


if __name__ == "__main__":
    runs, elsewhere = OUT / "runs", OUT / "runs-of-others"
    runs.mkdir()
    elsewhere.mkdir()
    inside, outside = runs / "model.ckpt", elsewhere / "model.ckpt"
    first = fit(1)
    first.save_checkpoint(str(inside))
    content = torch.load(inside, weights_only=False)
    content["datamodule_hyper_parameters"] = {"options": Options()}
    if scenario.CASE == "names":
        Options.__qualname__ = Options.__name__ = "Opt\x1b[2Jions"
        setattr(sys.modules["__main__"], Options.__name__, Options)
    for path in (inside, outside):
        torch.save(content, path)  # like another program
    if not scenario.CASE.endswith(("untrusted", "names")):
        trust(runs)
    if scenario.CASE == "opened":
        runs.chmod(0o777)
    elif scenario.CASE == "forced":
        os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    path = inside
    if scenario.CASE == "neighbour":
        path = outside
    elif scenario.CASE.startswith("link"):
        target, path = (outside, runs / "link.ckpt") if scenario.CASE == "link-out" else (inside, OUT / "link.ckpt")
        path.symlink_to(target)
    word = scenario.CASE.partition("-")[0]
    if word in ("best", "last"):
        with scenario.observing_warnings():
            ask_for(word, runs)
        sys.exit()
    with scenario.observing_errors(), scenario.observing_warnings():
        if scenario.CASE == "memory":
            memory = io.BytesIO(path.read_bytes())
            try:
                Model.load_from_checkpoint(memory)
            finally:
                scenario.observe(position=memory.tell())
        if scenario.CASE == "ways":
            fabric = scenario.fabric().Fabric(accelerator="cpu", devices=1)
            scenario.observe(
                fabric=fabric.load(path)["hyper_parameters"]["options"].width,
                data=Data.load_from_checkpoint(path).hparams.options.width,
            )
        asked = {"weights_only": True} if scenario.CASE == "asked" else {}
        loaded = Model.load_from_checkpoint(str(path), **asked)
        scenario.observe(loaded=loaded.hparams.options.width)
        scenario.observe(resumed=fit(3, ckpt_path=str(path)).global_step)
