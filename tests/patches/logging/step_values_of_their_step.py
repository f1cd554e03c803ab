"""A value is logged in the second batch only. Cases: ``own`` (with the logger), ``accumulate`` (two batches per step),
``validate``."""

from _expect import bug, fixed

EXPECT = [
    bug(stock={"rare": [1, 2, 3]}, patched={"rare": [1]}, like="own"),
    fixed("accumulate", stock={"rare": [0, 1]}, patched={"rare": [0]}),
    fixed("validate", stock={"rare": [1, 2, 3]}, patched={"rare": [1]}),
]

import _scenario as scenario

CASE = scenario.CASE


class Rows(scenario.pytorch("loggers.logger").DummyLogger):
    rows = ()

    def log_metrics(self, metrics, step=None):
        self.rows += (step,) * any(name.startswith("rare") for name in metrics)


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        if batch_idx == 1 and CASE == "own":
            self.logger.log_metrics({"rare": 7.0}, self.global_step)
        elif batch_idx == 1:
            self.log("rare", 7.0)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        if batch_idx == 1:
            self.log("rare", 7.0, on_step=True, on_epoch=False)


if __name__ == "__main__":
    rows = Rows()
    options = {"accumulate_grad_batches": 2} if CASE == "accumulate" else {}
    trainer = scenario.trainer(
        accelerator="cpu",
        max_epochs=1,
        limit_train_batches=4,
        limit_val_batches=4,
        logger=rows,
        log_every_n_steps=1,
        **options,
    )
    if CASE == "validate":
        trainer.validate(Model(), verbose=False)
    else:
        trainer.limit_val_batches = 0
        trainer.fit(Model())
    scenario.observe(rare=list(rows.rows))
