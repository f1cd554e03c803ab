"""A Trainer that was stopped early does not train in a second fit."""

from _expect import bug

# The Trainer's steps after the first fit, which stops at 2, and after the second, which can reach 10.
EXPECT = [bug(stock={"steps": [2, 2]}, patched={"steps": [2, 10]})]

import _scenario as scenario


class StopAfter(scenario.pl.Callback):
    def __init__(self, steps):
        self.steps = steps

    def on_train_batch_end(self, trainer, *_):
        trainer.should_stop = trainer.global_step == self.steps


if __name__ == "__main__":
    model = scenario.BoringModel()
    trainer = scenario.trainer(max_steps=10, callbacks=StopAfter(2), limit_val_batches=0)
    steps = []
    for _ in range(2):
        trainer.fit(model)
        steps.append(trainer.global_step)
    scenario.observe(steps=steps)
