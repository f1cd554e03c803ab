"""The device of a model after load_from_checkpoint. Cases: "" (map_location="cuda:0"), ``function`` (a function that
maps to it), ``cpu`` (map_location="cpu"), ``none`` (no map_location; the checkpoint was saved on the GPU), ``data`` (a
LightningDataModule). Needs a CUDA device, simulated or real."""

from _expect import bug, same

SHOWS = {"device": "cpu"}

EXPECT = [
    bug(["", "function"], stock=SHOWS, simulated_cuda=True, one_card=True),
    same(
        ["cpu", "none"],
        "model on the cpu is unchanged",
        lambda seen: {seen["device"], *seen["parameters"]} == {"cpu"},
        simulated_cuda=True,
        on="2.0.1",
    ),
    same("data", "datamodule is unchanged", {"device": None}, simulated_cuda=True, on="2.0.1"),
]

import _scenario as scenario
import torch

CASE = scenario.CASE
PATH = "saved.ckpt"


class Model(scenario.BoringModel):
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Data(scenario.pl.LightningDataModule):
    def train_dataloader(self):
        return Model().train_dataloader()


if __name__ == "__main__":
    trainer = scenario.trainer(accelerator="gpu" if CASE == "none" else "cpu", devices=1, max_steps=1)
    trainer.fit(Model(), Data())
    trainer.save_checkpoint(PATH)
    where = {
        "": {"map_location": "cuda:0"},
        "function": {"map_location": lambda storage, location: storage.cuda(0)},
        "cpu": {"map_location": "cpu"},
    }.get(CASE, {})
    loaded = (Data if CASE == "data" else Model).load_from_checkpoint(PATH, **where)
    devices = None if CASE == "data" else [str(p.device) for p in loaded.parameters()]
    scenario.observe(device=devices and str(loaded.device), parameters=devices)
