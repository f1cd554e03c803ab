"""A model whose hyperparameters contain an object of a user class, and the run's checkpoints (torch 2.6). Cases:
``best`` (``test(ckpt_path="best")``), ``last`` (a second Trainer resumes), ``load`` (``load_from_checkpoint``), ``ddp``
(``best``, on two CPU ranks), ``large`` (of 1 MB), ``exchanged`` (another file was put there, which calls a function),
``tampered`` (one byte of the weights was changed), ``copied`` (the run's own file, copied elsewhere), ``strict`` (the
script says weights_only=True), ``plain`` (no object in it), ``fabric NAME`` (modules and optimizers of Fabric, in lists
and dicts, of the top level, in an object, or fewer of them)."""

from _expect import bug, fixed, patched, same, whole_run

REFUSED = "Weights only load failed"

EXPECT = [
    *[
        bug(
            case,
            stock=REFUSED,
            compare=observed,
            like=case,
            like_variables=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
        )
        for case, observed in (("best", ("tested",)), ("last", ("steps",)), ("load", ("loaded", "same")))
    ],
    bug("fabric nested", "modules are restored in place", stock=REFUSED, like="fabric top", since="2.0.0"),
    patched("fabric object", "modules in an object are refused", REFUSED),
    patched("fabric fewer", "other modules than the saved are refused", "Modules in the given list can't be restored"),
    same("plain", "checkpoint without objects is unchanged"),
    same(
        ["encrypted", "save", "load", "watched", "edited", "environment", "allowed", "counting"],
        "custom checkpoint code sees the calls of stock",
        program="checkpoint_of_program",
        on=("2.0.9", "2.2.5", "2.6.6"),
    ),
    fixed(
        "ddp",
        "every rank reads what rank zero wrote",
        stock=REFUSED,
        patched=whole_run(lambda result: [bool(rank["tested"]) for rank in result.observations] == [True] * 2),
        on=("1.9.5", "2.6.6"),
    ),
    patched(
        ["load", "large"],
        "successful load prints no hint",
        lambda seen: not any("add_safe_globals" in text for text in seen["warnings"]),
    ),
    patched(
        ["exchanged", "tampered", "copied"],
        "file that the run did not write is refused",
        whole_run(lambda result: not result.ok and REFUSED in result.output and "loaded" not in result.observations[0]),
        on=("2.3.3", "2.6.6"),
    ),
    patched("strict", "explicit weights_only is respected", REFUSED),
    # A changed file of the run raises stock's error, with the hint for refused files.
    patched(
        "tampered",
        "changed large file is refused with a hint",
        whole_run(lambda result: all("add_safe_globals" in text for text in result.observations[0]["warnings"])),
    ),
    *[
        same(
            "linked",
            "new file replaces the last checkpoint as on stock",
            {"kept": kept},
            toggle=toggle,
            program="checkpoint_of_program",
            on=version,
        )
        for version, kept in (("2.0.9", 1), ("2.6.6", 0))
        for toggle in ("1", "1,checkpoint-written-once")
    ],
]

import argparse
import os
import shutil
from pathlib import Path

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader

OUT = Path(os.environ.get("SCENARIO_OUT", "."))
CASE = scenario.CASE


class Options:
    width = 300 if CASE in ("large", "tampered") else 3


class Called:
    """The object in a hostile file."""

    def __reduce__(self):
        return os.mkdir, (str(OUT / "called"),)


class Model(Module):
    def __init__(self, options=None):
        super().__init__()
        self.save_hyperparameters()
        width = Options.width
        self.layer = torch.nn.Linear(width, width * 3)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def test_step(self, batch, batch_idx):
        self.log("out", self.layer(batch).sum())


def trainer(epochs):
    callback = scenario.pl.callbacks.ModelCheckpoint(OUT / "checkpoints", save_last=True)
    options = {"devices": 2, "strategy": "ddp"} if CASE == "ddp" else {"devices": 1}
    return scenario.trainer(max_epochs=epochs, callbacks=callback, **options)


def run_fabric(how):
    fabric = scenario.fabric().Fabric(accelerator="cpu", devices=1)
    nets = [fabric.setup_module(torch.nn.Linear(1, 1, bias=False)) for _ in range(2)]
    optimizer = fabric.setup_optimizers(torch.optim.SGD(nets[1].parameters(), lr=0.1, momentum=0.9))
    fabric.backward(nets[1](torch.ones(1, 1)).sum())
    optimizer.step()

    def state(nets):
        if how == "top":
            return {"a": nets[0], "b": nets[1], "optimizer": optimizer, "epoch": 3}
        if how == "object":
            return {"nets": argparse.Namespace(nets=nets), "epoch": 3}
        return {"nets": nets, "others": {"of": (optimizer, {"b": nets[-1]})}, "epoch": 3}

    fabric.save(OUT / "nets.ckpt", state(nets))
    saved = [net.weight.clone() for net in nets]
    for net in nets:
        net.weight.data.fill_(-1)
    given = {**state(nets[:1] if how == "fewer" else nets), "epoch": 0}
    fabric.load(OUT / "nets.ckpt", given)
    if how == "nested":
        assert given["nets"] is nets and given["others"]["of"][0] is optimizer
    scenario.observe(
        restored=[net.weight.equal(weight) for net, weight in zip(nets, saved)],
        momentum=next(iter(optimizer.optimizer.state_dict()["state"].values()))["momentum_buffer"],
        epoch=given["epoch"],
    )


if __name__ == "__main__":
    torch.manual_seed(1)
    if CASE.startswith("fabric"):
        run_fabric(CASE.split()[1])
        raise SystemExit
    data = DataLoader(torch.ones(4, Options.width), batch_size=2)
    first = trainer(1)
    model = Model(None if CASE == "plain" else Options())
    first.fit(model, data)
    best = Path(first.checkpoint_callback.best_model_path)
    said = {}
    if CASE == "exchanged":
        torch.save({"state_dict": {}, "hyper_parameters": Called()}, best)
    elif CASE == "tampered":
        content = bytearray(best.read_bytes())
        content[len(content) // 2] ^= 1
        best.write_bytes(content)
    elif CASE == "copied":
        best = shutil.copy(best, OUT / "copy.ckpt")
    elif CASE == "strict":
        said = {"weights_only": True}
    try:
        with scenario.observing_errors(), scenario.observing_warnings():
            if CASE in ("load", "exchanged", "tampered", "copied", "strict"):
                loaded = Model.load_from_checkpoint(best, **said)
                scenario.observe(
                    loaded=loaded.hparams.options.width, same=loaded.layer.weight.equal(model.layer.weight)
                )
            elif CASE == "last":
                second = trainer(2)
                second.fit(Model(Options()), data, ckpt_path=str(best.with_name("last.ckpt")))
                scenario.observe(steps=second.global_step)
            else:
                scenario.observe(tested=first.test(model, data, ckpt_path="best", verbose=False))
    finally:
        scenario.observe(called=(OUT / "called").exists())
