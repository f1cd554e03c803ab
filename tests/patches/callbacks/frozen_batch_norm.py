"""BackboneFinetuning(train_bn=False), and the batch norm of its backbone while that is frozen. Cases: "", ``by-hand``
(a callback that passes train_bn on), ``train`` (train_bn=True), ``own`` (a callback that overrides
freeze_before_training and trains batch norm), ``unfrozen`` (three epochs, the backbone is frozen in the first)."""

from _expect import bug, patched, same, same_calls

EXPECT = [
    bug(stock=lambda seen: seen["learns"], like="by-hand"),
    same(["train", "own", "by-hand"], "other runs train as on stock"),
    patched(
        "unfrozen",
        "unfrozen batch norm updates its statistics again",
        lambda seen: seen["mean"] != [(0.0).hex()] * 2 and seen["weight"] == [(1.0).hex()] * 2,
    ),
    same_calls("replaced_freeze", "custom freeze is called as on stock"),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

CASE = scenario.CASE
BackboneFinetuning = scenario.pl.callbacks.BackboneFinetuning


class Handing(BackboneFinetuning):
    def freeze_before_training(self, pl_module):
        self.freeze(pl_module.backbone, train_bn=self.train_bn)


class Own(BackboneFinetuning):
    def freeze_before_training(self, pl_module):
        self.freeze(pl_module.backbone, train_bn=True)


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        self.head = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        return self.head(self.backbone(batch)).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD([p for p in self.parameters() if p.requires_grad], lr=0.1)


if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    callback = {"by-hand": Handing, "own": Own}.get(CASE, BackboneFinetuning)(
        unfreeze_backbone_at_epoch=1 if CASE == "unfrozen" else 10, train_bn=CASE == "train"
    )
    model = Model()
    norm = model.backbone[1]
    trainer = scenario.trainer(max_epochs=3 if CASE == "unfrozen" else 1, callbacks=callback)
    trainer.fit(model, DataLoader(torch.arange(16.0).reshape(8, 2), batch_size=4))
    scenario.observe(
        learns=norm.weight.requires_grad, mean=norm.running_mean, weight=norm.weight, head=model.head.weight
    )
