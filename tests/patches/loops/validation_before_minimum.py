"""A callback requests a stop in the first epoch, and min_epochs is three. Cases: none; ``steps`` (min_steps);
``interval`` (validation runs every second batch); ``late`` (the minimum was reached)."""

from _expect import bug, fixed, same


def _after_each_batch(seen):
    return seen["validations"] == list(range(2, 13))


EXPECT = [
    bug(["", "steps"], stock=_after_each_batch, patched={"validations": [4, 8, 12], "steps": 12, "stop": True}),
    same("late", "stop after the minimum validates at once", on="1.8.6"),
    fixed(
        "interval",
        "interval of validation is kept before the minimum",
        stock={"validations": list(range(2, 13))},
        patched={"validations": [2, 4, 6, 8, 10, 12], "steps": 12, "stop": True},
        on="1.8.6",
    ),
]

import _scenario as scenario


class Watch(scenario.pl.Callback):
    validations = []

    def on_train_batch_start(self, trainer, *_):
        if (trainer.current_epoch, trainer.global_step) == ((3, 13) if scenario.CASE == "late" else (0, 1)):
            trainer.should_stop = True

    def on_validation_start(self, trainer, pl_module):
        self.validations.append(trainer.global_step)


if __name__ == "__main__":
    options = {"min_steps": 12} if scenario.CASE == "steps" else {"min_epochs": 3}
    trainer = scenario.trainer(
        max_epochs=10,
        limit_train_batches=4,
        limit_val_batches=1,
        num_sanity_val_steps=0,
        val_check_interval=2 if scenario.CASE == "interval" else 1.0,
        callbacks=[Watch()],
        **options,
    )
    trainer.fit(scenario.boring_model()())
    scenario.observe(validations=Watch.validations, steps=trainer.global_step, stop=trainer.should_stop)
