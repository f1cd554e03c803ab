"""A run is resumed. Cases: a configuration and a stop of `tests.differential.resuming`; ``stopped`` (EarlyStopping had
stopped the run) and ``again`` (that run is resumed once more); ``search`` (with LearningRateFinder); ``unasked`` (with
OnExceptionCheckpoint and no ckpt_path), ``asked``, ``first`` (there is no earlier run), ``none`` (no such callback)."""

from _expect import same

EXPECT = [
    same(
        ["plain: epoch end", "plain: finished", "StepLR by epoch: epoch end", "first", "none"],
        "runs that are resumed exactly give no warning",
        alone=True,
        on=("2.2.5", "2.6.6"),
    ),
    same("asked", "given checkpoint gives no warning", alone=True),
]

import os

import _scenario as scenario
import torch

from tests.differential import resuming

kinds = scenario.pytorch("callbacks")
CASE = scenario.CASE
LAST = "saved/on_exception.ckpt"


class Model(scenario.BoringModel):
    lr, steps, breaks = 0.1, (), False

    def on_train_start(self):
        self.steps = (self.global_step,)

    def training_step(self, batch, batch_idx):
        if self.breaks and batch_idx == 2:
            raise ValueError("the step broke")
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        self.log("metric", torch.tensor(float(self.current_epoch)))

    def on_train_end(self):
        self.steps += (self.global_step,)


def fit(*callbacks, epochs=1, breaks=False, path=None):
    model = Model()
    model.breaks = breaks
    options = {"limit_train_batches": 4, "limit_val_batches": 1, "num_sanity_val_steps": 0}
    trainer = scenario.trainer(accelerator="cpu", max_epochs=epochs, callbacks=list(callbacks), **options)
    try:
        trainer.fit(model, ckpt_path=path)
    except ValueError:
        assert breaks
    return model.steps


def stopped(path=None, epochs=6):
    saving = kinds.ModelCheckpoint(f"until-{epochs}", "last")
    return fit(kinds.EarlyStopping("metric", patience=2), saving, epochs=epochs, path=path), saving.best_model_path


def search(path=None):
    finder = [kinds.LearningRateFinder(num_training_steps=3, early_stop_threshold=None)] if path else []
    return fit(*finder, kinds.ModelCheckpoint("saved", "last"), epochs=2 if path else 1, path=path)


def main():
    if ": " in CASE:
        return resuming.after_stop(CASE)
    if CASE in ("stopped", "again"):
        _, path = stopped()
        return {"steps": stopped(path if CASE == "stopped" else stopped(path, 4)[1], 7)[0]}
    if CASE == "search":
        search()
        return {"steps": search("saved/last.ckpt")}
    saves = [] if CASE == "none" else [kinds.OnExceptionCheckpoint("saved")]
    if CASE != "first":
        fit(*saves, breaks=True)
    return {"steps": fit(*saves, path="last" if CASE == "asked" else None), "saved": os.path.exists(LAST)}


if __name__ == "__main__":
    with scenario.observing_warnings():
        found = main()
    scenario.observe(**found)
