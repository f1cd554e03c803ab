"""load_from_checkpoint, and the first entry of the state is not a tensor. Cases: ``model`` (extra state of the model,
which has no direct parameters), ``only`` (there is no tensor), ``layer`` (extra state of a later layer), ``none``."""

from _expect import bug, same

ERROR = "AttributeError: 'dict' object has no attribute 'device'"

EXPECT = [
    *[
        bug(
            case,
            stock={"error": ERROR, "loaded": None, "remembered": None},
            patched={"error": None, "loaded": ["cpu", case == "model"], "remembered": "seven"},
        )
        for case in ("model", "only")
    ],
    same(
        ["layer", "none"],
        "state dict that starts with a tensor loads as on stock",
        {"error": None, "loaded": ["cpu", True]},
        on="2.0.2",
    ),
]

import _scenario as scenario
import torch


class Remembering(torch.nn.Module):
    remembered = None

    def get_extra_state(self):
        return {"remembered": self.remembered}

    def set_extra_state(self, state):
        self.remembered = state["remembered"]


class Layer(Remembering, torch.nn.Linear):
    pass


class Plain(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        if scenario.CASE != "only":
            self.layer = (Layer if scenario.CASE == "layer" else torch.nn.Linear)(2, 1)


class Model(Remembering, Plain):
    pass


if __name__ == "__main__":
    kind = Model if scenario.CASE in ("model", "only") else Plain
    model = kind()
    holder = model.layer if scenario.CASE == "layer" else model
    holder.remembered = "seven"
    trainer = scenario.trainer()
    trainer.strategy.connect(model)
    trainer.save_checkpoint("model.ckpt")
    error = loaded = None
    try:
        loaded = kind.load_from_checkpoint("model.ckpt")
    except AttributeError as raised:
        error = f"AttributeError: {raised}"
    holder = getattr(loaded, "layer", None) if scenario.CASE == "layer" else loaded
    weight = loaded is not None and scenario.CASE != "only" and torch.equal(loaded.layer.weight, model.layer.weight)
    scenario.observe(
        error=error, loaded=loaded and [str(loaded.device), weight], remembered=getattr(holder, "remembered", None)
    )
