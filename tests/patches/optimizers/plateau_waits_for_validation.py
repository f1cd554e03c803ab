"""ReduceLROnPlateau follows a metric of the validation, which does not run in every epoch. Cases: ``waits``, ``by
hand`` (the scheduler's frequency says so), ``resumed`` (the rest of such a training), ``two`` (a second scheduler
follows a metric of the training), ``trained`` (the only one does), ``lost`` (a training with such a scheduler is
resumed from a checkpoint at an epoch's end that lacks the metric), ``resumed by hand`` (a resumed training without the
bug), ``lenient`` (``strict=False``), ``stale`` (a
frequency that asks for the value of an earlier epoch), ``misspelled``, ``off`` (there is no validation), ``asked``
(validation runs in every epoch, and the Trainer's enable_validation is the program's own)."""

from _expect import bug, patched, same

ERROR = "MisconfigurationException: ReduceLROnPlateau conditioned on metric {} which is not available"
RELEASES = ["2.0.0", "2.6.6"]


def steps_in(*epochs):
    return lambda seen: seen["error"] is None and [epoch for epoch, *_ in seen["steps"]] == list(epochs)


EXPECT = [
    bug(
        "waits",
        stock=lambda seen: (seen["error"] or "").startswith(ERROR.format("val")) and seen["steps"] == [],
        patched=lambda seen: [epoch for epoch, *_ in seen["steps"]] == [1, 3, 5],
        like="by hand",
    ),
    same(
        ["trained", "lenient", "stale", "by hand", "resumed by hand", "asked"],
        "scheduler with its metric is unchanged",
        {"error": None, "epochs": 6},
        on=RELEASES,
    ),
    patched("resumed", "resumed training also waits", steps_in(3, 5)),
    patched("lost", "scheduler does not wait for a training metric that a checkpoint lacks", steps_in(3, 4, 5)),
    patched(
        "two",
        "scheduler of a training metric steps in every epoch",
        lambda seen: (
            [(epoch, mode) for epoch, mode, _ in seen["steps"]]
            == [(epoch, mode) for epoch in range(6) for mode in (("min",) if epoch % 2 else ()) + ("max",)]
        ),
    ),
    *[
        patched(
            case,
            "metric that is never logged is an error",
            lambda seen, name=name, epochs=epochs: (
                seen["error"].startswith(ERROR.format(name)) and seen["epochs"] == epochs
            ),
        )
        for case, name, epochs in (("misspelled", "vall", 1), ("off", "val", 0))
    ],
]

import _scenario as scenario
import torch

EVERY = 2
UNCHANGED = ("trained", "resumed by hand")


class Model(scenario.BoringModel):
    """Its metric lets the scheduler lower the learning rate at every call."""

    def __init__(self):
        super().__init__()
        self.steps = []

    def training_step(self, batch, batch_idx):
        self.log("train", float(self.current_epoch))
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        self.log("val", float(self.current_epoch))

    def on_train_epoch_end(self):
        if scenario.CASE == "lost" and self.trainer.max_epochs == 3:
            self.trainer.save_checkpoint("model.ckpt")

    def lr_scheduler_step(self, scheduler, metric):
        self.steps.append([self.current_epoch, scheduler.mode, float(metric)])
        super().lr_scheduler_step(scheduler, metric)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=1.0)

        def config(monitor, mode="min", **options):
            plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode, patience=0, factor=0.5)
            return {"scheduler": plateau, "monitor": monitor, **options}

        options = {"by hand": {"frequency": EVERY}, "lenient": {"strict": False}, "stale": {"frequency": 3}}
        monitor = {"trained": "train", "lost": "train", "misspelled": "vall"}.get(scenario.CASE, "val")
        configs = [config(monitor, **options.get(scenario.CASE.replace("resumed ", ""), {}))]
        if scenario.CASE == "two":
            configs.append(config("train", "max"))
        return [optimizer], configs


class Asked(scenario.pl.Trainer):
    asked = 0

    @property
    def enable_validation(self):
        self.asked += 1
        return super().enable_validation


def fit(epochs, path=None):
    model = Model()
    scenario.pl.Trainer = Asked
    trainer = scenario.trainer(
        max_epochs=epochs,
        limit_train_batches=2,
        limit_val_batches=0 if scenario.CASE == "off" else 1,
        check_val_every_n_epoch=1 if scenario.CASE == "asked" else EVERY,
    )
    error = None
    try:
        trainer.fit(model, ckpt_path=path)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    return trainer, {
        "error": error,
        "epochs": trainer.current_epoch,
        "steps": model.steps,
        "asked": trainer.asked if scenario.CASE == "asked" else None,
        "attributes": sorted(vars(trainer.fit_loop.epoch_loop)) if scenario.CASE in UNCHANGED else None,
        "lr": trainer.optimizers[0].param_groups[0]["lr"],
    }


if __name__ == "__main__":
    is_resumed = scenario.CASE.startswith("resumed")
    trainer, seen = fit(2 if is_resumed else 3 if scenario.CASE == "lost" else 6)
    if is_resumed and seen["error"] is None:
        trainer.save_checkpoint("model.ckpt")
        trainer, seen = fit(6, "model.ckpt")
    if scenario.CASE == "lost":
        checkpoint = torch.load("model.ckpt", weights_only=False)
        checkpoint["loops"]["fit_loop"]["epoch_loop.state_dict"].pop("_monitored_metrics", None)
        torch.save(checkpoint, "model.ckpt")
        trainer, seen = fit(6, "model.ckpt")
    scenario.observe(**seen)
