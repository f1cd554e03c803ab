"""TF32 is enabled by torch's newer setting, on a (simulated) GPU that supports it. Cases: ``trainer``, ``fabric``, and
``monitor``, a Trainer with a ThroughputMonitor. With ``-older`` behind it, TF32 is enabled by the older setting; with
``-unset``, it is not enabled; with ``-driver``, the driver does not report the GPU."""

from _expect import bug, same

EXPECT = [
    *[
        bug(
            case,
            stock="checking the matmul precision without a specific backend name",
            patched={"advice": 0},
            simulated_cuda=True,
            like=f"{case}-older",
            since=since,
        )
        for case, since in (("trainer", ""), ("fabric", ""), ("monitor", "2.2.0"))
    ],
    bug("trainer-driver", stock="Invalid device id", patched={"advice": 0}, simulated_cuda=True, like="trainer-older"),
    same(
        ["trainer-unset", "fabric-unset"],
        "warning of stock about precision is kept",
        lambda seen: seen["advice"] > 0,
        simulated_cuda=True,
        on=("2.0.9", "2.6.6"),
    ),
    same(
        "trainer-older",
        "warning of stock is absent if precision is set",
        {"advice": 0},
        simulated_cuda=True,
        on=("2.0.9", "2.6.6"),
    ),
]

import logging
import os

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

KIND, _, SETTING = scenario.CASE.partition("-")
ADVICE = []


class Advice(logging.Handler):
    def emit(self, record):
        if "Tensor Cores" in record.getMessage():
            ADVICE.append(record.getMessage())


def with_trainer(**options):
    class Model(Linear):
        def __init__(self):
            super().__init__()
            torch.nn.init.ones_(self.layer.weight)

        def training_step(self, batch, batch_idx):
            return self.layer(batch[0]).sum()

    model = Model()
    for _ in range(2):
        trainer = scenario.trainer(accelerator="gpu", devices=1, max_epochs=1, **options)
        trainer.fit(model, DataLoader(TensorDataset(torch.ones(2, 2))))
    return model.layer.weight


def with_monitor():
    torch.cuda.get_device_name = lambda device=None: "NVIDIA A100-SXM4-40GB"
    monitor = scenario.pl.callbacks.ThroughputMonitor(batch_size_fn=len, window_size=2)
    logger = scenario.pl.loggers.CSVLogger(os.getcwd())
    with_trainer(callbacks=monitor, logger=logger, log_every_n_steps=1)
    return float(monitor.available_flops)


def with_fabric():
    fabric = scenario.fabric().Fabric(accelerator="cuda", devices=1)
    fabric.launch()
    return fabric.to_device(torch.ones(2)) * 2


if __name__ == "__main__":
    if torch.cuda.get_device_capability()[0] < 8:  # the simulated card is an older one
        torch.cuda.get_device_capability = lambda device=None: (8, 0)
    if SETTING == "":
        torch.backends.cuda.matmul.fp32_precision = "tf32"
    elif SETTING == "older":
        torch.set_float32_matmul_precision("high")
    elif SETTING == "driver":

        def get_device_capability(device=None):
            raise AssertionError("Invalid device id")

        torch.cuda.get_device_capability = get_device_capability
    for name in ("lightning.fabric", "lightning_fabric", "lightning.pytorch", "pytorch_lightning"):
        logging.getLogger(name).addHandler(Advice())
    with scenario.observing_errors():
        run = {"fabric": with_fabric, "trainer": with_trainer, "monitor": with_monitor}[KIND]
        scenario.observe(computed=run(), advice=len(ADVICE))
