"""PR 19177: a Trainer that was stopped early trains nothing when it is to fit again.

Case ``before``: the program stops it before its first fit; ``own``: should_stop is a property of the program's.
"""

import _scenario as scenario

pl = scenario.pytorch()


class StopAfter(pl.Callback):
    def __init__(self, steps):
        self.steps = steps

    def on_train_batch_end(self, trainer, *_):
        trainer.should_stop = trainer.global_step == self.steps


class Own(pl.Trainer):
    sets = 0

    @property
    def should_stop(self):
        return self._stop

    @should_stop.setter
    def should_stop(self, value):
        self.sets += 1
        self._stop = value


if __name__ == "__main__":
    if scenario.CASE == "own":
        pl.Trainer = Own
    model = scenario.pytorch("demos.boring_classes").BoringModel()
    trainer = scenario.trainer(accelerator="cpu", max_steps=10, callbacks=StopAfter(2), limit_val_batches=0)
    trainer.should_stop = scenario.CASE == "before"
    steps = []
    for _ in range(2):
        trainer.fit(model)
        steps.append(trainer.global_step)
    scenario.observe(steps=steps)
    if scenario.CASE == "own":
        scenario.observe(sets=trainer.sets)
