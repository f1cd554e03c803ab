"""A training_step without batch_idx below a decorator is called with it. Cases: ``batch`` and ``iterator``, the
parameter of the step; ``twice``, below two decorators; ``dropped``, a decorator that takes batch_idx and does not pass
it on."""

from _expect import bug, fixed, patched, whole_run

TRAINS = {"steps": 3}

EXPECT = [
    bug(["batch", "iterator"], stock="takes 2 positional arguments but 3 were given", patched=TRAINS),
    fixed(
        "twice",
        "step with two decorators trains",
        stock=whole_run(lambda result: not result.ok),
        patched=TRAINS,
        alone=True,
    ),
    patched("dropped", "decorated hook with batch_idx gets it by default", TRAINS, toggle="default"),
]

import functools

import _scenario as scenario


def passing_on(step):
    @functools.wraps(step)
    def decorated(self, *args):
        return step(self, *args)

    return decorated


def dropping(step):
    @functools.wraps(step)
    def decorated(self, batch, batch_idx):
        return step(self, batch)

    return decorated


def of_batch(self, batch):
    return scenario.BoringModel.training_step(self, batch, 0)


def of_iterator(self, dataloader_iter):
    batch = next(dataloader_iter)  # since 2.1.0 with its index
    return scenario.BoringModel.training_step(self, batch[0] if isinstance(batch, tuple) else batch, 0)


STEPS = {
    "batch": passing_on(of_batch),
    "iterator": passing_on(of_iterator),
    "twice": passing_on(passing_on(of_batch)),
    "dropped": dropping(of_batch),
}

if __name__ == "__main__":
    model = type("Model", (scenario.BoringModel,), {"training_step": STEPS[scenario.CASE]})
    trainer = scenario.trainer(max_steps=3, limit_val_batches=0)
    with scenario.observing_errors():
        trainer.fit(model())
    scenario.observe(steps=trainer.global_step)
