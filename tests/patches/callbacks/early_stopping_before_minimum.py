"""EarlyStopping decides before min_epochs, the metric recovers, but the run ends."""

from _expect import bug, fixed, same

STOPPED = "EarlyStoppingReason.NOT_STOPPED"


EXPECT = [
    bug(
        stock={"epochs": 6, "stopped": 3},
        patched=lambda seen: (seen["epochs"], seen["stopped"], seen["wishes"][5]) == (10, 0, False),
        like="patient",
        compare=("epochs", "stopped"),
    ),
    fixed(
        ["steps", "finite"],
        "training continues if the metric has recovered",
        stock={"epochs": 6},
        patched=lambda seen: (
            (seen["epochs"], seen["stopped"], seen["reason"], bool(seen["said"])) == (10, 0, STOPPED, False)
        ),
    ),
    # The metric stays bad, or another EarlyStopping, a callback or a Timer requests the stop.
    same("never", "stop of a metric that stays bad is unchanged", {"epochs": 6}),
    same(["two", "asked", "time"], "other stops are unchanged", {"epochs": 6}, compare=("epochs", "wishes")),
    fixed(
        "again",
        "later stop is kept",
        stock={"wishes": [False] * 3 + [True] * 3},
        patched={"wishes": [False] * 3 + [True] + [False] * 2, "epochs": 6, "stopped": 5},
    ),
]

import _scenario as scenario

VALUES = [1.0, 1.1, 1.2, 1.3, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
CASE = scenario.CASE
if CASE == "never":
    VALUES = [1.0 + epoch for epoch in range(10)]
elif CASE == "again":
    VALUES = [1.0, 1.1, 1.2, 0.9, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8]


class Model(scenario.boring_model()):
    def validation_step(self, batch, batch_idx):
        self.log("v", VALUES[self.current_epoch])
        self.log("w", -float(self.current_epoch) if self.current_epoch < 1 else 5.0)
        if CASE == "finite" and self.current_epoch == 2:
            self.log("x", float("nan"))
        else:
            self.log("x", 1.0 - self.current_epoch)


class Asks(scenario.pl.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        if trainer.current_epoch == 3:
            trainer.should_stop = True


class Watch(scenario.pl.Callback):
    seen = []

    def on_train_epoch_start(self, trainer, pl_module):
        self.seen.append(getattr(trainer, "should" + "_stop"))


if __name__ == "__main__":
    patience = {"patient": 5}.get(CASE, 2)
    stopping = scenario.pl.callbacks.EarlyStopping("x" if CASE == "finite" else "v", patience=patience)
    callbacks = [stopping, Watch()]
    if CASE == "asked":
        callbacks.append(Asks())
    elif CASE == "two":
        callbacks.insert(0, scenario.pl.callbacks.EarlyStopping("w", patience=2))
    options = {"max_epochs": 10, "min_epochs": 6}
    if CASE == "steps":
        options = {"max_epochs": 10, "min_steps": 12}
    elif CASE == "time":
        options["max_time"] = {"hours": 1}
    trainer = scenario.trainer(
        callbacks=callbacks, limit_train_batches=2, limit_val_batches=1, num_sanity_val_steps=0, **options
    )
    trainer.fit(Model())
    scenario.observe(epochs=trainer.current_epoch, stopped=stopping.stopped_epoch, wishes=Watch.seen)
    if hasattr(stopping, "stopping_reason"):
        scenario.observe(reason=str(stopping.stopping_reason), said=stopping.stopping_reason_message is not None)
