"""Callbacks from configure_callbacks, in a fit, a validation and a run of another module. Cases: ``passed`` (to the
Trainer), ``replaced`` (the program changes the Trainer's callbacks before the validation)."""

from _expect import bug, same

EXPECT = [
    bug(
        stock={"best": "", "calls": 2, "other": 1},
        patched={"calls": 1, "other": 0},
        like="passed",
        compare=["best"],
    ),
    same("passed", "module without callbacks is unchanged", {"calls": 0, "other": 1}),
    same(
        "replaced",
        "callbacks that the program has removed are configured again",
        {"calls": 2, "best": ""},
        compare=["calls", "best"],
    ),
]

import os

import _scenario as scenario

ModelCheckpoint = scenario.pytorch("callbacks").ModelCheckpoint


class Model(scenario.BoringModel):
    calls = 0

    def validation_step(self, batch, batch_idx):
        self.log("loss", self.step(batch))

    def configure_callbacks(self):
        if scenario.CASE == "passed":
            return []
        self.calls += 1
        return [ModelCheckpoint("checkpoints", monitor="loss")]


if __name__ == "__main__":
    given = [ModelCheckpoint("checkpoints", monitor="loss")] if scenario.CASE == "passed" else []
    trainer = scenario.trainer(max_epochs=1, limit_train_batches=2, limit_val_batches=1, callbacks=given)
    model = Model()
    trainer.fit(model)
    if scenario.CASE == "replaced":
        trainer.callbacks = []
    trainer.validate(model, verbose=False)
    best = os.path.basename(trainer.checkpoint_callback.best_model_path)
    trainer.validate(scenario.BoringModel(), verbose=False)
    scenario.observe(best=best, calls=model.calls, other=len(trainer.checkpoint_callbacks))
