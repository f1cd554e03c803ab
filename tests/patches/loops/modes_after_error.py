"""After an evaluation that ends in an error, or a batch size search in one, the next fit trains in training mode.

Cases: the method that fails; ``search NAME`` for a batch size search in it, ``finder NAME`` for its callback;
``frozen`` for a batch norm in evaluation mode, ``by-hand`` for a program that sets the modes itself after the error,
``hook`` for one that does so in on_exception, ``none`` for an evaluation without an error."""

from _expect import bug, fixed, same

RIGHT = {"training": [True, True, True]}
BY_HAND = {"training": [True, False, True]}
EXPECT = [
    *(
        bug(case, stock={"training": [False, False, False]}, patched=RIGHT, like="none")
        for case in ("fit", "predict", "search validate", "finder test")
    ),
    fixed("frozen", stock={"training": [False, False, False]}, patched={"training": [True, True, False]}),
    same("by-hand", "a program that sets the modes after the error", BY_HAND),
    same("hook", "a callback that sets the modes in on_exception", BY_HAND),
]

import _scenario as scenario
import torch

CASE = scenario.CASE


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.batch_size = 2
        self.body = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.BatchNorm1d(32))
        self.modes = []

    def loader(self):
        return torch.utils.data.DataLoader(torch.ones(16, 32), batch_size=self.batch_size)

    train_dataloader = val_dataloader = test_dataloader = predict_dataloader = loader

    def training_step(self, batch, batch_idx):
        self.modes.append([self.training, *(part.training for part in self.body)])
        return super().training_step(batch, batch_idx)

    def fail(self, batch, batch_idx):
        if CASE != "none" and "search" not in CASE and "finder" not in CASE:
            raise ValueError("the step fails")

    validation_step = test_step = predict_step = fail


class Mode(scenario.pl.Callback):
    def on_exception(self, trainer, model, exception):
        if CASE == "hook":
            by_hand(model)


def by_hand(model):
    model.train()
    model.body[0].eval()


if __name__ == "__main__":
    model = Model()
    if CASE == "frozen":
        model.body[1].eval()
    word, _, method = CASE.partition(" ")
    if word == "finder":
        callbacks = [scenario.pl.callbacks.BatchSizeFinder(max_trials=2)]
    else:
        callbacks = [Mode()]
    trainer = scenario.trainer(max_epochs=1, callbacks=callbacks)
    try:
        if word == "search":
            scenario.tuner(trainer).scale_batch_size(model, method=method, max_trials=2)
        else:
            getattr(
                trainer,
                {"by-hand": "validate", "hook": "test", "frozen": "validate", "none": "validate"}.get(
                    word, method or word
                ),
            )(model)
    except ValueError:
        if CASE == "by-hand":
            by_hand(model)
    model.modes.clear()
    scenario.trainer(max_steps=1, limit_val_batches=0).fit(model)
    scenario.observe(training=model.modes[0])
