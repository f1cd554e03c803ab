"""PR 18951: the model puts a batch norm layer into evaluation mode.

Cases: ``fit`` (without a validation), ``validated``, ``predicted`` (predict, test and validate come first), ``hook``
(on_validation_model_train switches it).
"""

import _scenario as scenario
import torch

CASE = scenario.CASE


class Model(scenario.pytorch("demos.boring_classes").BoringModel):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.BatchNorm1d(32))
        self.body[1].eval()
        self.modes = []

    def training_step(self, batch, batch_idx):
        self.modes.append([self.training, self.body[0].training, self.body[1].training])
        return super().training_step(batch, batch_idx)

    def forward(self, x):
        return super().forward(self.body(x))


class Switching(Model):
    def on_validation_model_train(self):
        self.train()


if __name__ == "__main__":
    model = Switching() if CASE == "hook" else Model()
    data = torch.utils.data.DataLoader(torch.ones(4, 32), batch_size=2)
    trainer = scenario.trainer(max_epochs=2, limit_val_batches=0 if CASE == "fit" else 1.0)
    with scenario.observing_warnings():
        if CASE == "predicted":
            for run in (trainer.predict, trainer.test, trainer.validate):
                run(model, data)
        trainer.fit(model, data, data)
    scenario.observe(modes=model.modes, moved=bool(model.body[1].running_mean.any()))
