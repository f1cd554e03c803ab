"""After an error in a validation, the module has the trained weights, and the checkpoint the average in state_dict.

Cases: ``by-hand`` and ``hook`` for programs that exchange the weights after fit and in on_exception, ``none`` for a run
without an error in the validation."""

from _expect import bug, same

RIGHT = {"module": True, "current": True, "average": False}
EXPECT = [
    bug(stock={"module": False, "current": False, "average": True}, patched=RIGHT, like="none", since="2.6.0"),
    same("by-hand", "a program that exchanges the weights after fit", compare=["module"]),
    same("hook", "a callback that exchanges the weights in on_exception", RIGHT),
]

import contextlib

import _scenario as scenario
import torch

CASE = scenario.CASE
kinds = scenario.pytorch("callbacks")


class Average(kinds.EMAWeightAveraging):
    def on_exception(self, trainer, model, exception):
        if CASE == "hook":
            self._swap_models(model)


class Model(scenario.BoringModel):
    def validation_step(self, batch, batch_idx):
        if CASE != "none":
            raise ValueError("the step fails")


class Keep(scenario.pl.Callback):
    def on_train_batch_end(self, trainer, model, *_):
        self.trained = {name: value.clone() for name, value in model.state_dict().items()}

    def on_train_epoch_end(self, trainer, model):
        if CASE == "none":
            raise ValueError("after the validation")


def is_equal(one, other):
    return all(torch.equal(one[name], value) for name, value in other.items())


if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    model, keep, average = Model(), Keep(), Average(decay=0.9)
    file = kinds.OnExceptionCheckpoint(scenario.QUIET["default_root_dir"], "on_exception")
    trainer = scenario.trainer(
        max_epochs=1, num_sanity_val_steps=0, enable_checkpointing=True, callbacks=[average, keep, file]
    )
    with contextlib.suppress(ValueError):
        trainer.fit(model)
    if CASE == "by-hand":
        average._swap_models(model)
    saved = torch.load(file.ckpt_path, weights_only=False)
    scenario.observe(
        module=is_equal(model.state_dict(), keep.trained),
        current=is_equal(saved["current_model_state"], keep.trained),
        average=is_equal(saved["state_dict"], keep.trained),
    )
