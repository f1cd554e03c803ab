"""A callback uses an old value of its monitor. Cases: ``mean`` and ``stopping`` (the mean of training is used after a
validation), ``batch`` (also logged by step), ``steps`` (every_n_train_steps), ``hook`` (logged in on_train_batch_end),
``none`` and ``none-stopping`` (no validation), ``one`` (val_check_interval=1); ``option``, ``validation``, ``step``,
``callback`` (logged in a callback's on_train_batch_end), ``none-option``, ``one-batch``: the value is new."""

from _expect import same, warns

MEAN = "uses an old value of 'loss': the mean of an earlier epoch"
NONE = "it waits for a validation, which never runs"
BOTH = ("2.0.0", "2.6.6")

EXPECT = [
    warns(["mean", "stopping", "steps"], "mean of an earlier epoch causes one warning", MEAN, on=BOTH),
    warns("batch", "value of the last batch causes one warning", "'loss': the value of the last batch", on=BOTH),
    warns("hook", "value of the batch before causes one warning", "'loss': the value of the batch before", on=BOTH),
    warns(["none", "none-stopping"], "missing validation causes one warning", NONE, on=BOTH),
    warns("one", "val_check_interval=1 causes one warning", "validates after each batch", on=BOTH),
    same(
        ["option", "validation", "step", "callback", "none-option", "one-batch"],
        "warning is absent if the value is new",
        on=BOTH,
    ),
]

import _scenario as scenario

CASE = scenario.CASE
callbacks = scenario.pytorch("callbacks")


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        if CASE not in ("hook", "callback", "validation"):
            by_step = CASE in ("batch", "step")
            self.log("loss", float(self.global_step), on_step=by_step, on_epoch=CASE != "step")
        return super().training_step(batch, batch_idx)

    def on_train_batch_end(self, *_):
        if CASE == "hook":
            self.log("loss", float(self.global_step))

    def validation_step(self, batch, batch_idx):
        if CASE == "validation":
            self.log("loss", 1.0)


class Logs(callbacks.Callback):
    def on_train_batch_end(self, trainer, module, *_):
        if CASE == "callback":
            module.log("loss", float(trainer.global_step))


if __name__ == "__main__":
    kind, options = callbacks.ModelCheckpoint, {"dirpath": "saved", "save_top_k": -1}
    if "stopping" in CASE:
        kind, options = callbacks.EarlyStopping, {"mode": "max"}
    if CASE in ("steps", "step", "hook", "callback"):
        options["every_n_train_steps"] = 1
    if "option" in CASE:
        options["save_on_train_epoch_end"] = True
    many = {"check_val_every_n_epoch": 2}
    if CASE.startswith("one"):
        many = {"val_check_interval": 1}
    trainer = scenario.trainer(
        accelerator="cpu",
        max_epochs=4,
        limit_train_batches=1 if CASE == "one-batch" else 2,
        limit_val_batches=0 if CASE.startswith("none") else 1,
        num_sanity_val_steps=0,
        callbacks=[Logs(), kind(monitor="loss", **options)],
        **many,
    )
    with scenario.observing_warnings():
        trainer.fit(Model())
    scenario.observe(step=trainer.global_step)
