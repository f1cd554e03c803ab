"""PR 19046: Python numbers logged while bfloat16 is torch's default.

Cases: ``default`` (torch.set_default_dtype), ``precision`` (precision="bf16-true", from 2.1.0 on).
"""

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

pl = scenario.pytorch()


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        self.log("float", 0.123456, batch_size=1)
        self.log("integer", 1001, batch_size=1)
        self.log(value=True, name="flag", batch_size=1)
        self.log_dict({"in_dict": 3.14159}, on_step=False, on_epoch=True, batch_size=1)
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    pl.seed_everything(3)
    options = {}
    if scenario.CASE == "precision":
        options["precision"] = "bf16-true"
    else:
        torch.set_default_dtype(torch.bfloat16)
    trainer = scenario.trainer(max_epochs=1, accelerator="cpu", **options)
    trainer.fit(Model(), DataLoader(torch.ones(2, 1), batch_size=1))
    scenario.observe(metrics={name: float(value) for name, value in sorted(trainer.callback_metrics.items())})
