"""Python numbers logged while bfloat16 is torch's default. Cases: ``default`` (torch.set_default_dtype), ``precision``
(precision="bf16-true", from 2.1.0 on), ``fabric`` and ``alone`` (a LightningModule that logs to Fabric's loggers, or
without any), ``float32`` (the usual training: warnings, and reads of the module's device)."""

from _expect import bug, same

EXPECT = [
    *[
        bug(
            case,
            stock=lambda seen: seen["metrics"]["float"] == (0.12353515625).hex(),
            patched=lambda seen: abs(float.fromhex(seen["metrics"]["float"]) - 0.123456) < 1e-08,
            since=since,
        )
        for case, since in (("default", ""), ("precision", "2.1.0"))
    ],
    # With the same warnings and the same number of reads of the module's device.
    same(
        ["fabric", "alone", "float32"],
        "numbers without a trainer or half precision are logged as on stock",
        on=("2.0.0", "2.0.9", "2.1.2"),
    ),
]

import warnings

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader


class Model(Linear):
    features = 1

    def training_step(self, batch, batch_idx):
        self.log("float", 0.123456, batch_size=1)
        self.log("integer", 1001, batch_size=1)
        self.log(value=True, name="flag", batch_size=1)
        self.log_dict({"in_dict": 3.14159}, on_step=False, on_epoch=True, batch_size=1)
        return self.layer(batch).mean()


class Asked(Linear):
    asked = 0

    @property
    def device(self):
        Asked.asked += 1
        return super().device

    def training_step(self, batch, batch_idx):
        before = Asked.asked
        for number in (1, True, 0.5, 1j):
            self.log(f"number {number}", number, batch_size=1)
        scenario.observe(asked=Asked.asked - before)
        return super().training_step(batch, batch_idx)


class Logger(scenario.pl.loggers.Logger):
    name, version, experiment = "name", "version", None

    def __init__(self):
        self.logged = []

    def log_metrics(self, metrics, step=None):
        self.logged.append([(name, type(value).__name__, str(value)) for name, value in metrics.items()])

    def log_hyperparams(self, *args, **kwargs):
        pass


def log_numbers(module):
    for number in (1, 0.1, 2**24 + 1, True, 1j):
        module.log("number", number)
    module.log_dict({"integer": 1, "float": 0.1})


if __name__ == "__main__" and scenario.CASE == "fabric":
    logger = Logger()
    fabric = scenario.fabric().Fabric(accelerator="cpu", loggers=logger)
    log_numbers(fabric.setup(Model()))
    scenario.observe(logged=logger.logged)
elif __name__ == "__main__" and scenario.CASE == "alone":
    log_numbers(Model())
    scenario.observe(logged=[])
elif __name__ == "__main__" and scenario.CASE == "float32":
    trainer = scenario.trainer(max_epochs=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.fit(Asked(), DataLoader(torch.ones(1, 2)))
    scenario.observe(
        warned=[str(each.message) for each in caught if "self.log(" in str(each.message)],
        logged={name: str(value) for name, value in trainer.callback_metrics.items()},
    )
elif __name__ == "__main__":
    scenario.pl.seed_everything(3)
    options = {}
    if scenario.CASE == "precision":
        options["precision"] = "bf16-true"
    else:
        torch.set_default_dtype(torch.bfloat16)
    trainer = scenario.trainer(max_epochs=1, **options)
    trainer.fit(Model(), DataLoader(torch.ones(2, 1), batch_size=1))
    scenario.observe(metrics={name: float(value) for name, value in sorted(trainer.callback_metrics.items())})
