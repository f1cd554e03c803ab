"""LightningCLI gets a checkpoint with hyperparameters that its model does not accept. Cases: ``other`` (a model that
takes one of two), ``none`` (one that takes nothing), ``same`` (the model that was trained), ``wrong`` (one that takes
both, of another type); in subclass mode ``subclass`` (the command line names another class) and ``trained`` (it names
the same). With ``-stripped`` behind it, the hyperparameters that the model does not take have been taken out of the
checkpoint."""

from _expect import bug, patched, same, warns

MADE = {"failed": None, "made": "Trained", "width": 5}


def loads(made, warning):
    """Return a check that the class is created, with one warning that contains this."""
    return lambda seen: (
        {**seen, "warnings": []} == {**MADE, "made": made, "warnings": []}
        and len(seen["warnings"]) == 1
        and warning in seen["warnings"][0]
    )


EXPECT = [
    bug(
        ["other", "none"],
        stock={"failed": True},
        patched=lambda seen: seen["made"] is not None,
        like="{}-stripped",
        compare=("failed", "made", "width"),
    ),
    same("same", "suitable checkpoint is unchanged", alone=True, on=("2.5.5", "2.6.6")),
    warns("wrong", "checkpoint with wrong values is refused with a warning", "", alone=True, on=("2.5.5", "2.6.6")),
    same(
        "other",
        "checkpoint is refused by default as upstream tests require",
        {"failed": True},
        toggle="default",
        on=("2.5.5", "2.6.6"),
    ),
    patched(
        "other",
        "warning names the dropped hyperparameters",
        loads("Other", "are left out: lr."),
        alone=True,
        on=("2.5.5", "2.6.6"),
    ),
    patched(
        "subclass",
        "warning names the replaced class in subclass mode",
        loads("Trained", "creates a __main__.Trained, which the checkpoint names, instead of the __main__.Also"),
        alone=True,
    ),
    patched(
        "trained",
        "warning about the class of the checkpoint is absent in subclass mode",
        {**MADE, "warnings": []},
        alone=True,
    ),
]

import contextlib
import io

import _scenario as scenario
import torch

LightningCLI = scenario.pytorch("cli").LightningCLI
CASE, STRIPPED, _ = scenario.CASE.partition("-stripped")


class Trained(scenario.BoringModel):
    def __init__(self, width: int = 2, lr: float = 0.1):
        super().__init__()
        self.save_hyperparameters()
        self.width = width


class Also(Trained):
    def __init__(self, width: int = 2, lr: float = 0.1):
        super().__init__(width, lr)


class Other(scenario.BoringModel):
    def __init__(self, width: int = 2):
        super().__init__()
        self.width = width


class TakesNothing(scenario.BoringModel):
    def __init__(self):
        super().__init__()


class Wrong(scenario.BoringModel):
    def __init__(self, width: bool = True):
        super().__init__()
        self.width = width


def command(model, *arguments, **options):
    limits = {"accelerator": "cpu", "max_steps": 1, "limit_val_batches": 1, "num_sanity_val_steps": 0}
    defaults = {**scenario.QUIET, "enable_checkpointing": True, **limits}
    return LightningCLI(model, save_config_callback=None, trainer_defaults=defaults, args=list(arguments), **options)


if __name__ == "__main__":
    options = {"subclass_mode_model": True} if CASE in ("subclass", "trained") else {}
    named = ["--model=__main__.Trained"] if options else []
    path = command(Trained, "fit", *named, "--model.width=5", **options).trainer.checkpoint_callback.best_model_path
    if STRIPPED:
        content = torch.load(path, weights_only=False)
        for name in ("lr", "width") if CASE == "none" else ("lr",):
            del content["hyper_parameters"][name]
        torch.save(content, path)
    if CASE == "subclass":
        named = ["--model=__main__.Also"]
    model = {"other": Other, "none": TakesNothing, "same": Trained, "wrong": Wrong}.get(CASE, Trained)
    made, failed, said = None, None, io.StringIO()
    with scenario.observing_warnings():
        try:
            with contextlib.redirect_stderr(said):
                made = command(model, "validate", *named, f"--ckpt_path={path}", **options).model
        except SystemExit:
            failed = "Parsing of ckpt_path hyperparameters failed!" in said.getvalue()
    scenario.observe(failed=failed, made=made and type(made).__name__, width=getattr(made, "width", None))
