"""A model with manual optimization, and Trainer(gradient_clip_val=...). Cases: ``norm`` and ``value`` (the algorithm);
with ``-called`` behind it, the model clips the gradients itself and the Trainer has no value; with ``-both``, it does
so as well; ``mixed``: in bf16-mixed; ``zero``; ``accumulated``: with Trainer(accumulate_grad_batches=2)."""

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
