"""Stages of the Trainer are compared as strings. Counts how often the training stage is compared with itself, and notes
which stage each hook sees. Cases: ``plain``, ``others`` (a program sets other things as the stage), ``compiled`` (asked
for in a compiled step)."""

from _expect import bug, fixed, same

EXPECT = [
    bug(
        "plain",
        stock=lambda seen: seen["counted"] > 50,
        compare=lambda ranks: [{**rank, "counted": rank["counted"] > 50} for rank in ranks],
        compare_like=lambda ranks: [{**rank, "counted": False} for rank in ranks],
    ),
    same(
        ["others", "compiled"],
        "other stages compare as on stock",
        lambda seen: seen["seen"],
        compare="seen",
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
    fixed(
        "plain",
        "stages are compared less often",
        stock=lambda seen: seen["counted"] > 50,
        patched=lambda seen: seen["counted"] < 5,
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
    same(
        "plain",
        "each hook sees the stage of stock",
        compare=lambda ranks: [{**rank, "counted": None} for rank in ranks],
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
]

import enum
import sys

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

states = scenario.pytorch("trainer.states")
Stage = states.RunningStage
seen, counted = [], []


class Other(enum.Enum):
    TRAIN = "train"


class Watch(scenario.pl.Callback):
    def __getattribute__(self, name):
        if name.startswith("on_") and name.endswith(("start", "end")):
            return lambda trainer, *_: seen.append(
                [name, str(trainer.state.stage), trainer.training, trainer.validating, trainer.evaluating]
            )
        return super().__getattribute__(name)


class Model(Linear):
    def training_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).mean()
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("value", self.layer(batch[0]).mean())

    test_step = validation_step

    def predict_step(self, batch, batch_idx):
        return self.layer(batch[0])


def profile(frame, event, arg):
    code = frame.f_code
    if event == "call" and code.co_name == "__eq__" and frame.f_locals.get("self") is Stage.TRAINING:
        counted.extend([1] * (frame.f_locals["other"] is Stage.TRAINING))


def train():
    scenario.pl.seed_everything(3)
    model, trainer = Model(), scenario.trainer(max_epochs=2, callbacks=[Watch()])
    loader = DataLoader(TensorDataset(torch.arange(8.0).reshape(4, 2)), batch_size=1)
    sys.setprofile(profile)
    trainer.fit(model, loader, loader)
    trainer.validate(model, loader, verbose=False)
    trainer.test(model, loader, verbose=False)
    trainer.predict(model, loader)
    sys.setprofile(None)
    return {"weights": model.layer.weight, "metrics": dict(trainer.callback_metrics)}


def compare():
    trainer = scenario.trainer()
    for stage in [*Stage, None, "train", "TRAIN", Other.TRAIN, states.TrainerFn.VALIDATING, 1]:
        trainer.state.stage = stage
        seen.append([str(stage), trainer.training])
    for value in (True, False):
        trainer.training = value
        seen.append([str(trainer.state.stage), trainer.training])
    return {}


def compiled():
    trainer = scenario.trainer()

    def step(value):
        return value + 1 if trainer.training else value - 1

    fast = torch.compile(step, backend="eager")
    for stage in (Stage.TRAINING, Stage.VALIDATING, Stage.TRAINING, Stage.TESTING):
        trainer.state.stage = stage
        seen.append(fast(torch.zeros(1)).item())
    from torch._dynamo.utils import counters

    breaks = sum(counters["graph_break"].values())
    return {"frames": counters["frames"]["ok"], "graphs": counters["stats"]["unique_graphs"], "breaks": breaks}


if __name__ == "__main__":
    more = {"others": compare, "compiled": compiled}.get(scenario.CASE, train)()
    scenario.observe(seen=seen, counted=len(counted), **more)
