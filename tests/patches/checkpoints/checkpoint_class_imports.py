"""Checkpoints whose hyperparameters name classes that no script has imported, where LightningCLI's code reads them.

Cases: ``command line`` and ``part of it`` (LightningCLI is given the checkpoint; it names the model's class, or that of
one of its parts), ``loaded`` (load_from_checkpoint, a part; also ``in other words``, as YAML, where a class ``or a
text`` may stand, below the ``init_args`` of the model's class, and beside ``a class that is none``). With ``imported``,
the class is one of the script's; ``a part of it`` is one that fits, and ``trusted`` says so before.
``constructor``, ``text`` and ``wrong`` name nothing that is parsed as a class.
"""

from _expect import bug, fixed, patched, same


def _refused(observations):
    """Return if the module was imported. Loading always ends with an error."""
    return [rank["imported"] for rank in observations]


REFUSED = "ValueError: The checkpoint's hyperparameters name '_named_in_file', a module that has not been imported"


def is_refused(seen):
    return not seen["imported"] and seen["result"].startswith(REFUSED)


def _is_imported(seen):
    return seen["imported"]


NARROW = {"result": "Model with Narrow"}

EXPECT = [
    # Not compared: how loading ends: with an error, since nothing in the module is of use
    *[
        bug(case, stock=lambda seen: seen["imported"], since=since, compare=_refused, like=f"{case}, imported")
        for case, since in (("command line", "2.6.0"), ("part of it", "2.5.5"), ("loaded", ""))
    ],
    fixed(
        [
            "command line",
            "part of it",
            "loaded",
            "loaded, in other words",
            "loaded, or a text",
            "loaded, a class that is none",
        ],
        "module named in the file is not imported",
        stock=_is_imported,
        patched=is_refused,
        toggle="security",
    ),
    fixed(
        ["loaded, init_args", "loaded, a class that is none"],
        "module named in the file is not imported",
        stock=_is_imported,
        patched=is_refused,
        toggle="security",
        on="2.3.0",
    ),
    *[
        same(
            f"{case}, imported",
            "imported classes are created as on stock",
            {"result": result, "imported": False},
            toggle="security",
            on=releases,
        )
        for case, result, releases in (
            ("command line", "Deeper with Linear", ("2.6.0", "2.6.6")),
            ("part of it", "Model with Wide", "2.6.6"),
            ("loaded", "Model with Wide", ("2.3.0", "2.6.6")),
        )
    ],
    same("loaded, a part of it", "checkpoints load by default", NARROW, toggle="default", on=("2.3.0", "2.6.6")),
    patched(
        "loaded, trusted", "checkpoint of a trusted module loads", NARROW, toggle="security", on=("2.3.0", "2.6.6")
    ),
    patched(
        "loaded, a part of it",
        "error names the way to trust a module",
        lambda seen: "lightning_patches.trust_module('_part_in_file')" in seen["result"],
        toggle="security",
        on=("2.3.0", "2.6.6"),
    ),
    # A constructor may import a module, a string need not name one, and other errors are unchanged.
    same(
        "constructor",
        "constructor may import a module",
        {"imported": True, "result": "Model with Linear"},
        toggle="security",
    ),
    same(
        "text", "string need not name a module", {"imported": False, "result": "Model with Linear"}, toggle="security"
    ),
    same(
        "wrong",
        "other errors are unchanged",
        lambda seen: not seen["imported"] and seen["result"].startswith("ArgumentError"),
        toggle="security",
    ),
]

import contextlib
import importlib
import io
import sys
from typing import Union

import _scenario as scenario
import torch
from _model import Module

cli = scenario.pytorch("cli")
COMMAND, _, REST = scenario.CASE.partition(", ")


class Part(torch.nn.Linear):
    def __init__(self, width: int = 2):
        super().__init__(width, 1)


class Wide(Part):
    def __init__(self, width: int = 2):
        super().__init__(width)


class Model(Module):
    def __init__(self, width: int = 2, layer: Part = None, backend: str = "", head: Union[Part, str] = "", **kwargs):
        super().__init__()
        self.save_hyperparameters(ignore=["layer"])
        if backend and scenario.CASE == "constructor":
            importlib.import_module(backend)
        self.layer = layer or torch.nn.Linear(width, 1)

    def test_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def test_dataloader(self):
        return torch.utils.data.DataLoader(torch.zeros(2, 2))


class Deeper(Model):
    pass


def saved(**named):
    """Write a checkpoint like Lightning's with these hyperparameters."""
    path = "model.ckpt"
    trainer = scenario.trainer(max_steps=0, limit_val_batches=0)
    model = Model()
    trainer.strategy.connect(model)
    trainer.save_checkpoint(path)
    content = torch.load(path, weights_only=False)
    content["hyper_parameters"] = named
    torch.save(content, path)
    return path


def command_line(path, subclasses):
    """``python script.py test --ckpt_path PATH``, with ``--model Model`` in subclass mode. Return the outcome."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            made = cli.LightningCLI(
                Model,
                subclass_mode_model=subclasses,
                save_config_callback=None,
                trainer_defaults={**scenario.QUIET, "accelerator": "cpu"},
                args=["test", *(["--model=__main__.Model"] if subclasses else []), f"--ckpt_path={path}"],
            )
        return f"{type(made.model).__qualname__} with {type(made.model.layer).__qualname__}"
    except SystemExit:
        return f"SystemExit: {said.getvalue()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def load(path):
    try:
        made = Model.load_from_checkpoint(path)
        return f"{type(made).__qualname__} with {type(made.layer).__qualname__}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    ours = REST == "imported"
    part = {"class_path": "__main__.Wide" if ours else "_named_in_file.Model", "init_args": {"width": 2}}
    if REST in ("a part of it", "trusted"):
        part["class_path"] = "_part_in_file.Narrow"
    if REST == "trusted" and "lightning_patches" in sys.modules:
        sys.modules["lightning_patches"].trust_module("_part_in_file")
    if REST == "in other words":
        part = r'{class_path: "\x5fnamed_in_file.Model"}'
    of_cli = {"_instantiator": f"{scenario.pl.__name__}.cli.instantiate_module"}
    if COMMAND == "command line":
        named = "__main__.Deeper" if ours else "_named_in_file.Model"
        result = command_line(saved(_class_path=named, width=2), subclasses=True)
    elif COMMAND == "part of it":
        result = command_line(saved(layer=part), subclasses=False)
    elif COMMAND == "loaded":
        forms = {
            "or a text": {"head": "_named_in_file.Model"},
            "init_args": {"class_path": "__main__.Model", "init_args": {"layer": part}},
            "a class that is none": {"class_path": "none", "layer": part},
        }
        result = load(saved(**forms.get(REST, {"layer": part}), **of_cli))
    else:
        values = {"width": "no number"} if COMMAND == "wrong" else {"backend": "_named_in_file"}
        result = load(saved(**values, **of_cli))
    scenario.observe(result=result, imported="_named_in_file" in sys.modules)
