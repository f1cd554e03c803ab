"""PR 18094: a checkpoint of 1.x with the fault-tolerant mode cannot be loaded.

The file has the form of 1.6 to 1.9 for a model with the Trainer's state among its hyperparameters; the script allows
objects in checkpoints.

Cases: ``model`` (``load_from_checkpoint``), ``fit`` (training continues), ``context`` (only ``pl_legacy_patch``), and
    checkpoints that load on stock: ``plain``, ``broken`` (another class is missing), ``own`` (the script has added the
    enum).
"""

from _expect import bug, same

EXPECT = [
    *[
        bug(
            case,
            stock=lambda seen: (seen["error"] or "").endswith("has no attribute '_FaultTolerantMode'"),
            patched=lambda seen: seen["error"] is None and bool(seen["found"]) and (not seen["left"]),
            since="2.0.0" if case == "fit" else "",
        )
        for case in ("model", "fit", "context")
    ],
    same("plain", "plain checkpoint loads as on stock", lambda seen: seen["error"] is None and (not seen["left"])),
    same("own", "custom enumeration is kept", lambda seen: seen["error"] is None and seen["left"]),
    same("broken", "broken checkpoint is refused as on stock", lambda seen: seen["error"] is not None),
]

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"

import _scenario as scenario
import torch

enums = scenario.pytorch("utilities.enums")
legacy_patch = scenario.pytorch("utilities.migration").pl_legacy_patch


class Model(scenario.BoringModel):
    def __init__(self, state=None):
        super().__init__()
        self.save_hyperparameters()


class Mode(scenario.fabric("utilities.enums").LightningEnum):
    DISABLED = "disabled"
    AUTOMATIC = "automatic"
    MANUAL = "manual"


def give_name(name):
    Mode.__module__, Mode.__qualname__ = enums.__name__, name
    setattr(enums, name, Mode)


def save(directory):
    """A checkpoint of one step."""
    trainer = scenario.trainer(max_steps=1, limit_val_batches=0)
    torch.manual_seed(1)
    trainer.fit(Model())
    path = os.path.join(directory, "old.ckpt")
    trainer.save_checkpoint(path)
    if scenario.CASE == "plain":
        return path
    checkpoint = torch.load(path)
    state = scenario.pytorch("trainer.states").TrainerState()
    state._fault_tolerant_mode = Mode.DISABLED
    checkpoint["hyper_parameters"] = {"state": state}
    checkpoint["pytorch-lightning_version"] = "1.9.5"
    name = "_NobodysMode" if scenario.CASE == "broken" else "_FaultTolerantMode"
    give_name(name)
    torch.save(checkpoint, path)
    if scenario.CASE != "own":
        delattr(enums, name)
    return path


def seen(model):
    mode = getattr(model.hparams["state"], "_fault_tolerant_mode", None)
    return {"bias": model.layer.bias, "mode": mode and [type(mode).__name__, mode.name, mode.value]}


def load(path):
    if scenario.CASE == "fit":
        trainer = scenario.trainer(max_steps=3, limit_val_batches=0)
        trainer.fit(Model(), ckpt_path=path)
        return {"steps": trainer.global_step}
    if scenario.CASE == "context":
        with legacy_patch():
            state = torch.load(path)["hyper_parameters"]["state"]
        return {"mode": state._fault_tolerant_mode.value}
    return seen(Model.load_from_checkpoint(path))


if __name__ == "__main__":
    path = save(os.getcwd())
    found = error = None
    try:
        found = load(path)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}".partition(" on <module")[0]
    scenario.observe(found=found, error=error, left=hasattr(enums, "_FaultTolerantMode"))
