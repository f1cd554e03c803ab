"""A validation in the middle of an accumulation discards the gradients. Cases: ``automatic``, ``own`` (a hook of the
module calls zero_grad), ``validate`` (Trainer.validate alone), ``asked`` (without accumulation, and the Trainer counts
who asks how many batches there are)."""

from _expect import bug, patched, same

EXPECT = [
    # Not compared: how often zero_grad was called: 2.1.0 also calls it elsewhere
    bug(
        "automatic",
        stock=lambda seen: all(gradient in (None, [(0.0).hex()]) for gradient in seen["gradients"]),
        patched=lambda seen: seen["gradients"][0] == [((1 + 2) / 4).hex()] and (not seen["overridden"]),
        compare=("gradients", "weight"),
    ),
    same(["validate", "asked"], "run without accumulation is unchanged", alone=True, on="2.0.9"),
    # By the hook, and by the loop at the end of a window.
    patched("own", "custom hook calls the original zero_grad", {"zeroed": 4 + 2}, alone=True),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader


class Model(Linear):
    loss = staticmethod(torch.mean)
    features, bias = 1, False

    def __init__(self):
        super().__init__()
        self.gradients, self.zeroed = [], 0

    def on_validation_start(self):
        self.gradients.append(None if self.layer.weight.grad is None else self.layer.weight.grad.clone())
        if scenario.CASE == "own":
            self.zero_grad()

    def zero_grad(self, *args, **kwargs):
        self.zeroed += 1
        super().zero_grad(*args, **kwargs)

    def validation_step(self, batch, batch_idx):
        self.layer(batch)


class Asked(scenario.pl.Trainer):
    asked = 0

    @property
    def num_training_batches(self):
        self.asked += 1
        return super().num_training_batches


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    data = DataLoader(torch.arange(1.0, 9.0).reshape(8, 1), batch_size=1)
    if scenario.CASE == "asked":
        scenario.pl.Trainer = Asked
    trainer = scenario.trainer(
        max_epochs=1,
        num_sanity_val_steps=0,
        accumulate_grad_batches=1 if scenario.CASE == "asked" else 4,
        val_check_interval=2,
    )
    if scenario.CASE == "validate":
        model.layer(torch.ones(1, 1)).sum().backward()
        trainer.validate(model, data, verbose=False)
    else:
        trainer.fit(model, data, data)
    scenario.observe(gradients=model.gradients, zeroed=model.zeroed, weight=model.layer.weight)
    if scenario.CASE == "asked":
        scenario.observe(asked=trainer.asked)
    scenario.observe(overridden="zero_grad" in vars(model))
