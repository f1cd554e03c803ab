"""validate, test or predict, and then fit, of a module with a metric.

Cases: the method, ``by-hand`` for a program that resets the metric before fit, ``off`` for inference_mode=False."""

from _expect import bug, same

SEEN = {"means": [3.0, 1.0]}
EXPECT = [
    *(bug(case, stock="Inplace update to inference tensor", patched=SEEN, like="off") for case in ("validate", "test")),
    same("by-hand", "a program that resets the metric itself", SEEN),
]

import _scenario as scenario
import torch
import torchmetrics

CASE = scenario.CASE


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.mean = torchmetrics.MeanMetric()
        self.value = 3.0
        self.means = []

    def validation_step(self, batch, batch_idx):
        self.mean.update(torch.tensor(self.value))
        self.log("mean", self.mean)

    test_step = validation_step


if __name__ == "__main__":
    model = Model()
    options = {} if CASE != "off" else {"inference_mode": False}
    data = torch.utils.data.DataLoader(torch.ones(4, 32), batch_size=2)
    evaluation = scenario.trainer(**options)
    getattr(evaluation, CASE if CASE in ("validate", "test") else "validate")(model, data, verbose=False)
    if CASE == "by-hand":
        model.mean.reset()
    model.value = 1.0
    trainer = scenario.trainer(max_epochs=1, num_sanity_val_steps=0)
    trainer.fit(model, data, data)
    scenario.observe(means=[float(each.callback_metrics["mean"]) for each in (evaluation, trainer)])
