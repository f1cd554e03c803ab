"""The model puts a batch norm layer into evaluation mode. Cases: ``fit`` (without a validation), ``validated``,
``predicted`` (predict, test and validate come first), ``validated-before`` (validate comes first), ``hook``
(on_validation_model_train switches it); ``trained`` (it does not), ``kept`` (``train`` keeps it there), ``again`` and
``step`` (a hook, or training_step, puts it there again), ``evaluated`` (the whole model is there); ``start`` (when
training starts), ``middle`` (the same, with a validation in the middle of the epoch)."""

from _expect import bug, patched, same

EXPECT = [
    bug(
        ["fit", "validated", "predicted"],
        stock=lambda seen: seen["moved"] and seen["modes"][0] == [True, True, True],
        patched=lambda seen: not seen["moved"] and seen["modes"] == 4 * [[True, True, False]],
        compare=("modes", "moved"),
    ),
    patched("validated", "warning is absent if the mode is kept", {"warnings": []}),
    same(
        "hook",
        "hook that switches to training mode takes effect",
        lambda seen: seen["moved"],
        compare="modes",
        alone=True,
    ),
]

import _scenario as scenario
import torch

CASE = scenario.CASE


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.BatchNorm1d(32))
        self.modes = []
        self.freeze_if(CASE not in ("trained", "start", "middle", "step"))

    def freeze_if(self, condition):
        if condition:
            self.body[1].eval()

    def train(self, mode=True):
        super().train(mode)
        self.freeze_if(CASE == "kept")
        return self

    def on_train_start(self):
        self.freeze_if(CASE in ("start", "middle"))

    def on_train_epoch_start(self):
        self.freeze_if(CASE == "again")

    def training_step(self, batch, batch_idx):
        self.freeze_if(CASE == "step")
        self.modes.append([self.training, self.body[0].training, self.body[1].training])
        return super().training_step(batch, batch_idx)

    def forward(self, x):
        return super().forward(self.body(x))


class Switching(Model):
    def on_validation_model_train(self):
        self.train()


if __name__ == "__main__":
    model = Switching() if CASE == "hook" else Model()
    if CASE == "evaluated":
        model.eval()
    data = torch.utils.data.DataLoader(torch.ones(4, 32), batch_size=2)
    options = {"fit": {"limit_val_batches": 0}, "middle": {"val_check_interval": 1}}
    trainer = scenario.trainer(max_epochs=2, **options.get(CASE, {}))
    with scenario.observing_warnings():
        earlier = {"predicted": ("predict", "test", "validate"), "validated-before": ("validate",)}
        for run in earlier.get(CASE, ()):
            getattr(trainer, run)(model, data)
        trainer.fit(model, data, data)
    scenario.observe(modes=model.modes, moved=bool(model.body[1].running_mean.any()))
