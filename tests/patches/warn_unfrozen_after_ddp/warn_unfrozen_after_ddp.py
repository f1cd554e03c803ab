"""Issue 20340: what is unfrozen after the start, in a job of two ranks under DDP.

Cases: ``callback`` (BackboneFinetuning), ``hand`` (the module unfreezes it within an epoch, and the optimizer had it
from the start), ``untrained`` (unfrozen, and in no optimizer), ``lr`` (never frozen, with a learning rate of 0 at
first), ``one`` (``hand`` in one rank).
"""

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

pl = scenario.pytorch()
CASE = scenario.CASE


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 2)
        if CASE not in ("callback", "lr"):
            self.backbone.requires_grad_(False)

    def training_step(self, batch, batch_idx):
        return self.head(self.backbone(batch)).pow(2).mean()

    def on_train_batch_start(self, batch, batch_idx):
        if (self.current_epoch, batch_idx) == (1, 1):
            if CASE == "lr":
                self.optimizers().param_groups[1]["lr"] = 0.1
            elif CASE != "callback":
                self.backbone.requires_grad_(True)

    def configure_optimizers(self):
        groups = [{"params": self.head.parameters(), "lr": 0.1}]
        if CASE not in ("callback", "untrained"):
            groups.append({"params": self.backbone.parameters(), "lr": 0.0 if CASE == "lr" else 0.1})
        return torch.optim.SGD(groups, lr=0.1)


if __name__ == "__main__":
    pl.seed_everything(1)
    model = Model()
    finetuning = scenario.pytorch("callbacks").BackboneFinetuning(unfreeze_backbone_at_epoch=1)
    trainer = scenario.trainer(
        accelerator="cpu",
        devices=1 if CASE == "one" else 2,
        strategy="ddp",
        max_epochs=3,
        callbacks=[finetuning] if CASE == "callback" else [],
    )
    with scenario.observing_warnings():
        trainer.fit(model, DataLoader(torch.randn(16, 4), batch_size=2))
    scenario.observe(backbone=model.backbone.weight, head=model.head.weight)
