"""A validation, test or epoch fails, and the next one also counts its batches.

Cases: the method that fails; ``other METHOD`` if another Trainer runs the next one, ``good METHOD`` if the first one
succeeds, ``by-hand METHOD`` if the program resets the metric itself, ``read METHOD`` if it reads the metric."""

from _expect import bug, fixed, same

RIGHT = {"sum": 9.0, "rows": 9.0}
EXPECT = [
    bug("fit-val", stock={"sum": 17.0}, patched=RIGHT, like="good fit-val", compare=("sum", "rows")),
    bug(
        "other validate", stock={"sum": 17.0, "rows": 9.0}, patched=RIGHT, like="good validate", compare=("sum", "rows")
    ),
    fixed("fit-val", stock={"sum": 17.0, "rows": 17.0}, patched=RIGHT, on=("2.1.0", "2.6.6")),
    fixed("other test", stock={"sum": 17.0}, patched=RIGHT),
    fixed("other fit", stock={"sum": 17.0}, patched=RIGHT),
    same("validate", "stock resets the loops of validate and test", RIGHT),
    same("by-hand other validate", "the program resets the metric itself", RIGHT),
    same("read fit-val", "a metric is read after the error", {"read": 8.0}, compare=("read",)),
]

import _scenario as scenario
import torch
import torchmetrics

CASE = scenario.CASE
*WORDS, METHOD = CASE.split()
STEP = {"fit": "training", "validate": "validation", "fit-val": "validation", "test": "test"}[METHOD]


class Model(scenario.boring_model()):
    def __init__(self):
        super().__init__()
        self.sum = torchmetrics.SumMetric()
        self.fails = "good" not in WORDS

    def loader(self):
        return torch.utils.data.DataLoader(torch.ones(9, 32), batch_size=4)

    train_dataloader = val_dataloader = test_dataloader = loader

    def record(self, step, batch, batch_idx):
        if step == STEP:
            self.sum.update(float(len(batch)))
            self.log("sum", self.sum, on_step=False, on_epoch=True)
            self.log("rows", float(len(batch)), reduce_fx="sum", on_step=False, on_epoch=True)
            if self.fails and batch_idx == 1:
                raise ValueError("the step fails")

    def training_step(self, batch, batch_idx):
        self.record("training", batch, batch_idx)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        self.record("validation", batch, batch_idx)

    def test_step(self, batch, batch_idx):
        self.record("test", batch, batch_idx)


if __name__ == "__main__":
    model, values = Model(), {}

    def run(trainer):
        getattr(trainer, METHOD.partition("-")[0])(model)
        return {name: trainer.callback_metrics[name].item() for name in ("sum", "rows")}

    def new():
        return scenario.trainer(max_epochs=1, num_sanity_val_steps=0)

    trainer = new()
    try:
        run(trainer)
    except ValueError:
        model.fails = False
        values["read"] = model.sum.compute().item()
        if "by-hand" in WORDS:
            model.sum.reset()
    if "good" not in WORDS:
        values.update(run(new() if "other" in WORDS else trainer))
    else:
        values.update(run(new()))
    scenario.observe(**values)
