"""PR 18951: the model puts a batch norm layer into evaluation mode.

Cases: ``trained`` (it does not), ``kept`` (``train`` keeps it there), ``again`` and ``step`` (a hook, or training_step,
puts it there again), ``evaluated`` (the whole model is there); ``start`` (when training starts, in the first epoch of
two), ``middle`` (so, with a validation in the middle of the epoch), ``validated`` (validated before fit).
"""

import _scenario as scenario
import torch

CASE = scenario.CASE


class Model(scenario.pytorch("demos.boring_classes").BoringModel):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.BatchNorm1d(32))
        if CASE not in ("trained", "start", "middle", "step"):
            self.body.eval()

    def train(self, mode=True):
        super().train(mode)
        if CASE == "kept":
            self.body.eval()
        return self

    def on_train_start(self):
        if CASE in ("start", "middle"):
            self.body.eval()

    def training_step(self, batch, batch_idx):
        if CASE == "step":
            self.body.eval()
        return super().training_step(batch, batch_idx)

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
    epochs = 2 if CASE in ("start", "step") else 1
    often = {"val_check_interval": 1} if CASE == "middle" else {}
    trainer = scenario.trainer(max_epochs=epochs, **often)
    with scenario.observing_warnings():
        if CASE == "validated":
            trainer.validate(model, data, verbose=False)
        trainer.fit(model, data, data)
    scenario.observe(moved=bool(model.body[1].running_mean.any()))
