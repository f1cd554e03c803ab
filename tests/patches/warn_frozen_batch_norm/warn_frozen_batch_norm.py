"""PR 18951: the model puts a batch norm layer into evaluation mode.

Cases: ``trained`` (it does not), ``kept`` (``train`` keeps it there), ``again`` (a hook puts it there again),
``evaluated`` (the whole model is there).
"""

import _scenario as scenario
import torch

CASE = scenario.CASE


class Model(scenario.pytorch("demos.boring_classes").BoringModel):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.BatchNorm1d(32))
        if CASE != "trained":
            self.body.eval()

    def train(self, mode=True):
        super().train(mode)
        if CASE == "kept":
            self.body.eval()
        return self

    def on_train_epoch_start(self):
        if CASE == "again":
            self.body.eval()

    def forward(self, x):
        return super().forward(self.body(x))


if __name__ == "__main__":
    model = Model()
    if CASE == "evaluated":
        model.eval()
    data = torch.utils.data.DataLoader(torch.ones(4, 32), batch_size=2)
    trainer = scenario.trainer(accelerator="cpu", max_epochs=1)
    with scenario.observing_warnings():
        trainer.fit(model, data, data)
    scenario.observe(moved=bool(model.body[1].running_mean.any()))
