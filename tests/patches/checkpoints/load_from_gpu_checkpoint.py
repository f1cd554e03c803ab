"""load_from_checkpoint of a GPU checkpoint on a machine without a GPU. Cases: none, ``cpu`` (saved on the CPU),
``given`` (with map_location), ``datamodule``, ``wrapped`` (saved on the CPU, and a tool has wrapped torch.load)."""

from _expect import bug, same

LOADED = {"same": True, "device": "cpu", "done": True}
REFUSED = "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"

EXPECT = [
    bug(stock=REFUSED, patched=lambda seen: seen == LOADED),
    bug("datamodule", stock=REFUSED, patched=lambda seen: seen["done"]),
    same(["cpu", "given"], "loadable checkpoint is loaded as on stock", LOADED, alone=True, on="2.0.9"),
    same("wrapped", "wrapper of torch load gets the arguments of stock", {**LOADED, "map_location": None}, on="2.0.9"),
]

import functools
import os
from unittest import mock

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import _scenario as scenario
import torch

Model = scenario.BoringModel


class Data(scenario.pytorch("demos.boring_classes").BoringDataModule):
    def load_state_dict(self, state):
        self.state = state


if __name__ == "__main__":
    path = "saved.ckpt"
    model, data = Model(), Data()
    trainer = scenario.trainer(max_steps=1, limit_val_batches=0)
    trainer.fit(model, data)
    location = "cpu" if scenario.CASE in ("cpu", "wrapped") else "cuda:1"
    with mock.patch("torch.serialization.location_tag", return_value=location):
        trainer.save_checkpoint(path)
    if scenario.CASE == "wrapped":
        load = torch.load

        @functools.wraps(load)
        def noted(*args, **kwargs):
            scenario.observe(map_location=kwargs["map_location"])
            return load(*args, **{**kwargs, "weights_only": False})

        torch.load = noted
    with scenario.observing_errors():
        if scenario.CASE == "datamodule":
            Data.load_from_checkpoint(path)
        else:
            options = {"map_location": {"cuda:1": "cpu"}} if scenario.CASE == "given" else {}
            loaded = Model.load_from_checkpoint(path, **options)
            scenario.observe(
                same=torch.equal(loaded.layer.weight, model.layer.weight), device=str(loaded.layer.weight.device)
            )
    scenario.observe(done=True)
