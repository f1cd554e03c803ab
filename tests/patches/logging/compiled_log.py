"""``self.log`` in a compiled LightningModule. Cases: ``model`` (``torch.compile(model)`` goes to the Trainer), ``step``
(the module compiles its own step), ``eager`` (what both must agree with: nothing is compiled), ``unasked`` (as
``model``, where ``torch.compiler.is_compiling`` crashes)."""

from _expect import bug, fixed, patched, same

ERROR = "InternalTorchDynamoError"

EXPECT = [
    bug(["model", "step"], stock=ERROR, like="eager", compare=("metrics", "weights"), needs=("torch:compile",)),
    same("eager", "uncompiled module logs as on stock"),
    # In torch 2.6 and 2.7 on Python 3.11, each call of the query decrements None's reference count.
    patched("unasked", "crashing query of torch is not used", {"compiled": True}),
    *[
        fixed(
            case,
            "compiled module logs the same values",
            stock=ERROR,
            like="eager",
            compare=("metrics", "weights"),
            on=version,
        )
        for version, case in (("2.0.0", "model"), ("2.3.3", "step"), ("2.6.6", "model"))
    ],
    # Patches of functions that self.log calls also work in compiled code.
    fixed(
        "model",
        "compiled module logs with the other logging patches",
        stock=ERROR,
        like="eager",
        compare=("metrics", "weights"),
        toggle="compiled-log,log-metrics-without-move,logged-metrics-device",
        on=("2.3.3", "2.4.0"),
    ),
]

import _scenario as scenario
import torch
import torch._dynamo
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

if scenario.CASE == "unasked":

    def fails():
        raise SystemError("torch 2.6 and 2.7 give away a reference that is not theirs")

    torch._C._dynamo.eval_frame.get_eval_frame_callback = fails


class Model(Linear):
    lr = 0.01

    def __init__(self):
        super().__init__()
        self.traced = False

    def training_step(self, batch, batch_idx):
        self.traced = torch._dynamo.is_compiling()
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("step", loss, on_step=True)
        doubled = 2 * loss
        self.log("epoch", doubled, on_step=False, on_epoch=True, prog_bar=True)
        self.log_dict({"loss": loss, "half": loss / 2})
        return loss + 1

    def validation_step(self, batch, batch_idx):
        self.log("validation", self.layer(batch[0]).mean(), prog_bar=True)


def compiled(function):
    return torch.compile(function, backend="eager")


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    trained = model
    if scenario.CASE in ("model", "unasked"):
        trained = compiled(model)
    elif scenario.CASE == "step":
        model.training_step = compiled(model.training_step)
        model.validation_step = compiled(model.validation_step)
    trainer = scenario.trainer(devices=1, max_epochs=2)
    loader = DataLoader(TensorDataset(torch.arange(8.0).reshape(4, 2)), batch_size=1)
    trainer.fit(trained, loader, loader)
    scenario.observe(metrics=dict(trainer.callback_metrics), weights=model.layer.weight)
    if scenario.CASE != "eager":
        frames = torch._dynamo.utils.counters["frames"]
        scenario.observe(compiled=model.traced and frames["ok"] > 0)
