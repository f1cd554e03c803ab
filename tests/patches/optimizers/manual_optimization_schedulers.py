"""Manual optimization refuses a custom scheduler."""

from _expect import bug, same

REFUSED = "doesn't follow PyTorch's LRScheduler API"

EXPECT = [
    bug(stock=REFUSED, patched={"rate": 0.25}),
    same("automatic", "automatic optimization still refuses the scheduler", REFUSED),
]

import _scenario as scenario
import torch


class Halving:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self):
        for group in self.optimizer.param_groups:
            group["lr"] /= 2

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Model(scenario.boring_model()):
    def __init__(self, automatic):
        super().__init__()
        self.automatic_optimization = automatic

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        if self.automatic_optimization:
            return loss
        self.manual_backward(loss["loss"])
        self.optimizers().step()
        self.lr_schedulers().step()
        return None

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
        return [optimizer], [Halving(optimizer)]


if __name__ == "__main__":
    model = Model(automatic=scenario.CASE == "automatic")
    with scenario.observing_errors():
        scenario.trainer(max_steps=2, limit_val_batches=0).fit(model)
    scenario.observe(rate=model.optimizers().param_groups[0]["lr"])
