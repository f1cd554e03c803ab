"""Issue 20388: 1,000 steps with ten logged metrics, while torch raises an error for each wait for the GPU.

The first step, which creates the metrics, may wait, and so may steps after which the logger gets numbers. Needs a real
CUDA device: the simulated one has no ``torch.cuda.set_sync_debug_mode``.
"""

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

pl = scenario.pytorch()
STEPS, EVERY = 1000, 50


class Strict(pl.Callback):
    steps = 0

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        logs = (batch_idx + 1) % EVERY == 0
        torch.cuda.set_sync_debug_mode("default" if batch_idx == 0 or logs else "error")
        self.steps += batch_idx > 0 and not logs

    def on_train_epoch_end(self, *_):
        torch.cuda.set_sync_debug_mode("default")


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).pow(2).mean()
        for number in range(10):
            self.log(f"metric_{number}", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    strict = Strict()
    data = DataLoader(torch.ones(STEPS, 4, 8).cuda(), batch_size=None)
    options = {"accelerator": "gpu", "devices": 1, "max_epochs": 1, "log_every_n_steps": EVERY}
    with scenario.observing_errors():
        scenario.trainer(callbacks=[strict], logger=pl.loggers.CSVLogger("logs"), **options).fit(Model(), data)
    scenario.observe(steps=strict.steps)
