"""A model is evaluated from a checkpoint, with a callback that has a state. Cases: ``validate``, ``test``, ``predict``,
each in a new Trainer; ``fitted`` (test with the Trainer of the fit, from a checkpoint in the middle of it)."""

from _expect import bug


def _evaluated_with(state):
    return {"evaluated_with": state}


EXPECT = [
    *[
        bug(case, stock=_evaluated_with(without), patched=_evaluated_with(2))
        for case, without in (("validate", 0), ("test", 0), ("predict", 0), ("fitted", 3))
    ]
]

from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

callbacks = scenario.pytorch("callbacks")
OUT = Path.cwd()
CASE = scenario.CASE


class Model(Linear):
    features = 1

    def validation_step(self, batch, batch_idx):
        pass

    test_step = predict_step = validation_step


class Calibration(callbacks.Callback):
    """A callback that computes a threshold in training, and needs it in evaluation."""

    threshold = 0
    evaluated_with = None

    def on_train_epoch_end(self, trainer, model):
        self.threshold += 1

    def on_validation_start(self, trainer, model):
        self.evaluated_with = self.threshold

    on_test_start = on_predict_start = on_validation_start

    def state_dict(self):
        return {"threshold": self.threshold}

    def load_state_dict(self, state):
        self.threshold = state["threshold"]


def trainer(*more):
    calibration = Calibration()
    return calibration, scenario.trainer(enable_checkpointing=bool(more), callbacks=[calibration, *more], max_epochs=3)


if __name__ == "__main__":
    saving = callbacks.ModelCheckpoint(dirpath=str(OUT / "saved"), filename="{epoch}", save_top_k=-1)
    model, data = Model(), DataLoader(torch.ones(2, 1))
    calibration, fitted = trainer(saving)
    fitted.fit(model, data)
    used = fitted
    if CASE != "fitted":
        calibration, used = trainer()
    evaluate = used.test if CASE == "fitted" else getattr(used, CASE)
    evaluate(model, data, ckpt_path=str(OUT / "saved" / "epoch=1.ckpt"))
    scenario.observe(evaluated_with=calibration.evaluated_with, best=Path(saving.best_model_path).name)
