"""A pretrained part is loaded in evaluation mode, and trained in it. Cases: ``eval``, ``train``, ``frozen`` (in
evaluation mode, without gradients), ``switched`` (on_train_start calls train())."""

from _expect import same, warns

EXPECT = [
    warns(
        "eval",
        "module trained in evaluation mode causes a warning",
        "have parameters that are trained: pretrained.0",
        on=("2.2.0", "2.5.4"),
    ),
    same(["train", "frozen", "switched"], "warning is absent for other models", on="2.4.0"),
    same("eval", "warning is absent on unaffected releases", on=("2.1.4", "2.5.5")),
]

import _scenario as scenario
import torch


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.pretrained = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Dropout(0.5))
        if scenario.CASE != "train":
            self.pretrained.eval()
        if scenario.CASE == "frozen":
            self.pretrained.requires_grad_(False)
        self.modes = []

    def on_train_start(self):
        if scenario.CASE == "switched":
            self.train()

    def forward(self, x):
        return self.layer(self.pretrained(x))

    def training_step(self, batch, batch_idx):
        self.modes.append(self.pretrained.training)
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    model = Model()
    with scenario.observing_warnings():
        scenario.trainer(max_epochs=1, limit_train_batches=2, limit_val_batches=0).fit(model)
    scenario.observe(modes=model.modes)
