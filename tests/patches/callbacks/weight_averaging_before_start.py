"""Issue 21724: WeightAveraging, and validations and checkpoints from before its first average.

Six steps, a validation after each. Cases: ``never`` (the training ends before the average begins), ``without`` (no
callback), ``later`` (it begins with the fourth step), ``ema`` (the same, EMAWeightAveraging), ``resume`` (``later``,
from a checkpoint of the second step, which is validated before), ``at-once`` (it begins with the first), ``subclass``
(``later``, and the methods that swap and copy are overridden), ``other`` (``never``, and another callback averages in
its weights), ``restart`` (``at-once``, and another callback begins to count anew after each third epoch).
"""

from _expect import bug, fixed, patched, same, same_calls

TRAINED = [1 - step / 8 for step in range(1, 7)]
"""The weight after each step, without an average."""


def _weights(steps):
    """Return the validated and saved weight after each step. The last one is the training's result."""
    values = [value.hex() for value in steps]
    return {"validated": values, "saved": values, "trained": values[-1]}


def starts_with(*weights):
    return lambda seen: seen["validated"][:3] == [weight.hex() for weight in weights]


def _saves_what_it_validates(seen):
    return (
        starts_with(*TRAINED[:3])(seen) and seen["saved"] == seen["validated"] and seen["trained"] == seen["saved"][-1]
    )


EXPECT = [
    bug("never", stock=_weights([1.0] * 6), patched=_weights(TRAINED), like="without", since="2.6.0"),
    fixed(
        ["later", "ema"],
        "average is used from its start on",
        stock=starts_with(1.0, 1.0, 1.0),
        patched=_saves_what_it_validates,
        on="2.6.6",
    ),
    same(
        ["later", "ema"],
        "average after its start is unchanged",
        compare=lambda ranks: [ranks[0]["validated"][3:], ranks[0]["trained"]],
        on="2.6.6",
    ),
    patched("resume", "run resumed before the start keeps its weights", _saves_what_it_validates, on="2.6.6"),
    # Also an average that another callback updates without a count, or whose counter is reset.
    same(
        ["at-once", "other", "restart"],
        "average from the first step is unchanged",
        lambda seen: seen["trained"] not in ((1.0).hex(), TRAINED[-1].hex()),
        on="2.6.6",
    ),
    # Such a subclass may average by itself. Upstream's ``test_swa`` counts its calls.
    same("subclass", "subclass with more overrides is unchanged", {"calls": [12, 1]}, on="2.6.6"),
    same_calls("other_average", "average of another class is unchanged", on="2.6.6"),
]

from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

callbacks = scenario.pytorch("callbacks")
CASE = scenario.CASE
FIRST = {"never": 100, "other": 100, "at-once": 0, "restart": 0}.get(CASE, 3)
OUT = Path()


class Averaging(callbacks.WeightAveraging):
    def should_update(self, step_idx=None, epoch_idx=None):
        return step_idx is not None and step_idx >= FIRST


class Counting(Averaging):
    swaps = copies = 0

    def _swap_models(self, pl_module):
        self.swaps += 1
        super()._swap_models(pl_module)

    def _copy_average_to_current(self, pl_module):
        self.copies += 1
        super()._copy_average_to_current(pl_module)


class Other(callbacks.Callback):
    """Other code that changes the average."""

    def on_train_batch_end(self, trainer, *args):
        if CASE == "other":
            average = trainer.callbacks[0]._average_model.module
            for mean, now in zip(average.parameters(), trainer.lightning_module.parameters()):
                mean.data.lerp_(now.data, 0.5)

    def on_train_epoch_end(self, trainer, pl_module):
        if CASE == "restart" and trainer.current_epoch % 3 == 2:
            trainer.callbacks[0]._average_model.n_averaged.zero_()


class Model(Linear):
    loss = staticmethod(torch.mean)
    features, weight, lr = 1, 1.0, 0.125

    def __init__(self):
        super().__init__()
        self.validated = []

    def validation_step(self, batch, batch_idx):
        self.validated.append(float(self.layer.weight))


def trainer(epochs):
    saving = callbacks.ModelCheckpoint(OUT / "checkpoints", filename="{step}", save_top_k=-1)
    added = [] if CASE == "without" else [Counting() if CASE == "subclass" else Averaging()]
    if CASE == "ema":
        added = [callbacks.EMAWeightAveraging(decay=0.5, update_starting_at_step=FIRST)]
    if CASE in ("other", "restart"):
        added.append(Other())
    return scenario.trainer(max_epochs=epochs, num_sanity_val_steps=0, callbacks=[*added, saving])


if __name__ == "__main__":
    data = DataLoader(torch.ones(1, 1))
    model = Model()
    first = trainer(2 if CASE == "resume" else 6)
    first.fit(model, data, data)
    if CASE == "resume":
        trainer(1).validate(Model(), data, ckpt_path=OUT / "checkpoints" / "step=2.ckpt", verbose=False)
        validated, model = model.validated, Model()
        trainer(6).fit(model, data, data, ckpt_path=OUT / "checkpoints" / "step=2.ckpt")
        model.validated = validated + model.validated
    saved = {
        int(path.stem.partition("=")[2]): torch.load(path, weights_only=True) for path in OUT.glob("checkpoints/*.ckpt")
    }
    scenario.observe(
        **({"calls": [first.callbacks[0].swaps, first.callbacks[0].copies]} if CASE == "subclass" else {}),
        validated=model.validated,
        saved=[float(saved[step]["state_dict"]["layer.weight"]) for step in sorted(saved)],
        trained=float(model.layer.weight),
    )
