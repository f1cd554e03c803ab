"""max_steps counts the steps of all optimizers. Cases: ``two`` (both are stepped for each batch), ``turns`` (they take
turns), ``one``, ``epochs`` (max_epochs ends it)."""

from _expect import same, warns

EXPECT = [
    warns(
        "two",
        "end after half of the batches is warned of once",
        "max_steps=4 ended the training after 2 batches",
        on=("2.0.0", "2.6.6"),
    ),
    same(["turns", "one", "epochs"], "no warning if each batch is one step", on=("2.0.0", "2.6.6")),
]

import _scenario as scenario
import torch

CASE = scenario.CASE


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.batches = 0

    def configure_optimizers(self):
        number = 1 if CASE == "one" else 2
        return [torch.optim.SGD(self.parameters(), lr=0.1) for _ in range(number)]

    def training_step(self, batch, batch_idx):
        self.batches += 1
        optimizers = self.optimizers()
        optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
        for optimizer in [optimizers[batch_idx % 2]] if CASE == "turns" else optimizers:
            optimizer.zero_grad()
            self.manual_backward(self(batch).sum())
            optimizer.step()


if __name__ == "__main__":
    model = Model()
    limit = {"max_epochs": 1, "limit_train_batches": 4} if CASE == "epochs" else {"max_steps": 4}
    trainer = scenario.trainer(accelerator="cpu", limit_val_batches=0, **limit)
    with scenario.observing_warnings():
        trainer.fit(model)
    scenario.observe(batches=model.batches, step=trainer.global_step)
