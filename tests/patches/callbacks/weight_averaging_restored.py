"""Checkpoints of WeightAveraging restore the weights of the last step, or lose the changes of on_load_checkpoint.

Cases: ``test`` and ``predict`` (with the best checkpoint, after fit), ``test-fresh`` and ``predict-fresh`` (with a new
Trainer), ``test-swap`` (a subclass swaps the weights for the test), ``finished`` (a finished run is resumed), ``whole``
(the run itself), ``set`` and ``rename`` (on_load_checkpoint changes a buffer, or the name of a layer), ``set-both`` and
``rename-both`` (it changes the trained weights, too), ``trained`` (it takes the trained weights for the average),
``resume`` (on_load_checkpoint changes nothing), ``validate`` (with the best checkpoint).
"""

from _expect import bug, same


def _used(value):
    """Check the last weight that the test or the prediction used."""
    return lambda seen: float.fromhex(seen["used"][-1][0]) == value


TRAINED = 1 - 6 / 8
"""The weight after the last step, without an average."""


def _scale(value):
    return lambda seen: float.fromhex(seen["used"][0][1]) == value


EXPECT = [
    bug(["test", "predict"], stock=_used(TRAINED), like="{}-fresh", compare="used", since="2.6.0"),
    bug("finished", stock={"weight": [TRAINED]}, like="whole", compare="weight", since="2.6.0"),
    bug("set", stock=_scale(1.0), patched=_scale(5.0), like="{}-both", since="2.6.0"),
    bug("rename", stock='Missing key(s) in state_dict: "head.weight"', like="{}-both", since="2.6.0"),
    same(
        ["resume", "set-both", "rename-both", "trained", "validate", "test-fresh", "whole"],
        "program that needs no fix is unchanged",
    ),
    same("test-swap", "subclass that swaps the weights for the test tests the average", compare="used"),
]

import os

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

callbacks = scenario.pytorch("callbacks")
CASE = scenario.CASE
KIND, _, HOW = CASE.partition("-")
OUT = "checkpoints"


class Swapping(callbacks.EMAWeightAveraging):
    def on_test_epoch_start(self, trainer, pl_module):
        self._swap_models(pl_module)

    on_test_epoch_end = on_test_epoch_start


class Model(scenario.pl.LightningModule):
    def __init__(self, layer="layer", scale=1.0):
        super().__init__()
        self.name = layer
        setattr(self, layer, torch.nn.Linear(1, 1))
        torch.nn.init.ones_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)
        self.register_buffer("scale", torch.tensor(scale))
        self.used = []

    @property
    def linear(self):
        return getattr(self, self.name)

    def training_step(self, batch, batch_idx):
        self.used.append([float(self.linear.weight), float(self.scale)])
        return self.linear(batch).mean() * self.scale

    def validation_step(self, batch, batch_idx):
        self.used.append([float(self.linear.weight), float(self.scale)])

    test_step = predict_step = validation_step

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.125)


class Changing(Model):
    def on_load_checkpoint(self, checkpoint):
        if KIND == "trained":
            checkpoint["state_dict"] = checkpoint["current_model_state"]
        for key in ("state_dict", "current_model_state") if HOW == "both" else ("state_dict",):
            state = checkpoint[key]
            if KIND == "set":
                state["scale"] = self.scale.clone()
            elif KIND == "rename":
                checkpoint[key] = {name.replace("layer.", "head."): value for name, value in state.items()}


def trainer(epochs=3):
    kind = Swapping if HOW == "swap" else callbacks.EMAWeightAveraging
    saving = callbacks.ModelCheckpoint(OUT, filename="{epoch}", save_top_k=-1)
    return scenario.trainer(max_epochs=epochs, callbacks=[kind(decay=0.5), saving])


if __name__ == "__main__":
    data = DataLoader(torch.ones(2, 1))
    model = Model()
    first = trainer()
    first.fit(model, data)
    if KIND in ("test", "predict", "validate"):
        model.used = []
        path = "best" if HOW != "fresh" else os.path.join(OUT, "epoch=2.ckpt")
        getattr(trainer() if HOW == "fresh" else first, KIND)(model, data, ckpt_path=path)
    elif KIND == "finished":
        model = Model()
        trainer().fit(model, data, ckpt_path=os.path.join(OUT, "epoch=2.ckpt"))
    elif KIND != "whole":
        model = Changing("head" if KIND == "rename" else "layer", 5.0 if KIND == "set" else 1.0)
        with scenario.observing_errors():
            trainer(4).fit(model, data, ckpt_path=os.path.join(OUT, "epoch=1.ckpt"))
    scenario.observe(used=model.used[-4:], weight=model.linear.weight, scale=model.scale)
