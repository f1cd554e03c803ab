"""A model with manual optimization, and Trainer(gradient_clip_val=...). Cases: ``norm`` and ``value`` (the algorithm);
with ``-called`` behind it, the model clips the gradients itself and the Trainer has no value; with ``-both``, it does
so as well; ``mixed``: in bf16-mixed; ``zero``; ``accumulated``: with Trainer(accumulate_grad_batches=2)."""

from _expect import bug, fixed, patched, same

REFUSED = "Automatic gradient clipping is not supported for manual optimization"

EXPECT = [
    bug(["norm", "value", "mixed"], stock=REFUSED, like="{}-called", compare=("norms", "layer", "other")),
    same("zero", "gradients without a clip value are unchanged", on=("2.0.0", "2.6.6")),
    # Clips by value. By norm, torch would multiply by 0.5 / (0.5 + 0.000001) the second time.
    fixed(
        "value-both",
        "model that also clips gets the same result",
        stock=REFUSED,
        like="value-called",
        on=("2.0.0", "2.6.6"),
    ),
    patched("accumulated", "accumulation is refused as on stock", "Automatic gradient accumulation is not supported"),
]

import _scenario as scenario
import torch

KIND, _, HOW = scenario.CASE.partition("-")
ALGORITHM = KIND if KIND in ("norm", "value") else "norm"
NORMS = []
CLIPPED = {"gradient_clip_val": 0.5, "gradient_clip_algorithm": ALGORITHM}


class Model(scenario.boring_model()):
    """Two networks with an optimizer each, like a GAN."""

    automatic_optimization = False

    def __init__(self):
        super().__init__()
        self.other = torch.nn.Linear(32, 2)

    def training_step(self, batch, batch_idx):
        for optimizer, layer in zip(self.optimizers(), (self.layer, self.other)):
            optimizer.zero_grad()
            self.manual_backward(100 * layer(batch).square().sum())
            if HOW:
                self.clip_gradients(optimizer, **CLIPPED)
            optimizer.step()
            NORMS.append(round(sum(one.grad.norm().item() ** 2 for one in layer.parameters()) ** 0.5, 3))

    def configure_optimizers(self):
        return [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in (self.layer, self.other)]


if __name__ == "__main__":
    torch.manual_seed(1)
    options = {} if HOW == "called" else dict(CLIPPED)
    if KIND == "zero":
        options["gradient_clip_val"] = 0
    if KIND == "accumulated":
        options["accumulate_grad_batches"] = 2
    if KIND == "mixed":
        options["precision"] = scenario.precision("bf16-mixed")
    model = Model()
    trainer = scenario.trainer(limit_train_batches=3, limit_val_batches=0, max_epochs=1, **options)
    with scenario.observing_errors():
        trainer.fit(model)
    scenario.observe(norms=NORMS, layer=model.layer.weight, other=model.other.weight)
