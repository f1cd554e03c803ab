"""LightningCLI in subclass mode is given the checkpoint of a model that it made. Cases: ``subclass`` (the checkpoint is
of a subclass of the class on the command line), ``same`` (of that very class), ``plain`` (without subclass mode),
``empty`` (a checkpoint without hyperparameters), ``unknown`` (the checkpoint names a class of a module that no script
has imported)."""

from _expect import bug, fixed, same

PARSING = ['error: Parser key "model":', "Parsing of ckpt_path hyperparameters failed!"]
LOST = {"error": PARSING, "imported": False, "made": None, "values": None}
MADE = {"subclass": ("Deeper", {"width": 5, "depth": 3}), "same": ("Model", {"width": 5})}

EXPECT = [
    *[
        bug(
            case,
            stock=LOST,
            patched=lambda seen, made=made: (seen["error"], seen["made"], seen["values"]) == (None, *made),
        )
        for case, made in MADE.items()
    ],
    same(["plain", "empty"], "other checkpoints are unchanged", {"made": "Model"}),
    same("subclass", "other releases are unchanged", on=("2.5.4", "2.6.0")),
    *[
        fixed(
            "unknown",
            "module named in the file is not imported",
            stock=LOST,
            patched=lambda seen: (
                "'_named_in_file.Model', and that is not a subclass of Model that has been imported" in seen["error"]
                and not seen["imported"]
            ),
            toggle=toggle,
        )
        for toggle in ("", "default,security")
    ],
]

import contextlib
import io
import sys

import _scenario as scenario
import torch

LightningCLI = scenario.pytorch("cli").LightningCLI


class Model(scenario.BoringModel):
    def __init__(self, width: int = 2):
        super().__init__()
        if scenario.CASE != "empty":
            self.save_hyperparameters()
        self.width = width


class Deeper(Model):
    def __init__(self, depth: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.depth = depth


def command(*arguments):
    return LightningCLI(
        Model,
        subclass_mode_model=scenario.CASE != "plain",
        save_config_callback=None,
        trainer_defaults={
            **scenario.QUIET,
            "enable_checkpointing": True,
            "accelerator": "cpu",
            "max_steps": 1,
            "limit_val_batches": 0,
        },
        args=list(arguments),
    )


if __name__ == "__main__":
    kind, values = "Model", ["--model.width=5"]
    if scenario.CASE == "subclass":
        kind, values = "Deeper", ["--model.width=5", "--model.depth=3"]
    model = [] if scenario.CASE == "plain" else [f"--model=__main__.{kind}"]
    path = command("fit", *model, *values).trainer.checkpoint_callback.best_model_path
    if scenario.CASE == "unknown":
        content = torch.load(path, weights_only=False)
        content["hyper_parameters"]["_class_path"] = "_named_in_file.Model"
        torch.save(content, path)
    said = io.StringIO()
    made, error = None, None
    try:
        with contextlib.redirect_stderr(said):
            model = [] if scenario.CASE == "plain" else ["--model=__main__.Model"]
            made = command("test", *model, f"--ckpt_path={path}").model
    except ValueError as raised:
        error = str(raised)
    except SystemExit:
        error = [line for line in said.getvalue().splitlines() if line.startswith(("error:", "Parsing"))]
    scenario.observe(
        error=error,
        imported="_named_in_file" in sys.modules,
        made=made and type(made).__name__,
        values=made and {name: getattr(made, name) for name in ("width", "depth") if hasattr(made, name)},
    )
