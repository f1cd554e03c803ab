"""A callback requests a stop before min_epochs, and every later step is logged.

Cases: ``none`` without a request, ``accepted`` without min_epochs, ``steps`` with min_steps."""

from _expect import bug, fixed, same

RIGHT = {"steps": [1, 3, 5, 7]}
EXPECT = [
    bug(stock={"steps": [1, 3, 4, 5, 6, 7]}, patched=RIGHT, like="none"),
    fixed("steps", stock={"steps": [1, 2, 3, 4, 5]}, patched={"steps": [1, 3, 5]}),
    same("accepted", "the step of an accepted stop is logged", {"steps": [1, 2]}, on=("1.8.6", "2.6.6")),
]

import _scenario as scenario

CASE = scenario.CASE


class Steps(scenario.pytorch("loggers.logger").Logger):
    name, version, steps = "steps", 0, []

    def log_metrics(self, metrics, step=None):
        if "loss" in metrics:
            self.steps.append(step)

    def log_hyperparams(self, *args, **kwargs):
        pass


class Model(scenario.boring_model()):
    def training_step(self, batch, batch_idx):
        self.log("loss", 1.0)
        return super().training_step(batch, batch_idx)


class Stop(scenario.pl.Callback):
    def on_train_batch_start(self, trainer, model, batch, batch_idx):
        if CASE == "accepted" and trainer.global_step == 2 or CASE == "steps" and trainer.global_step == 1:
            trainer.should_stop = True

    def on_train_epoch_end(self, trainer, *_):
        if not CASE:
            trainer.should_stop = True


if __name__ == "__main__":
    logger = Steps()
    options = {"min_steps": 6} if CASE == "steps" else {} if CASE == "accepted" else {"min_epochs": 2}
    scenario.trainer(
        max_epochs=2,
        limit_train_batches=4,
        limit_val_batches=0,
        log_every_n_steps=2,
        logger=logger,
        callbacks=Stop(),
        **options,
    ).fit(Model())
    scenario.observe(steps=logger.steps)
