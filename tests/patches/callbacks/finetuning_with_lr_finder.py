"""The LearningRateFinder callback before BackboneFinetuning. Cases: ``finder``, ``resume`` (no finder; a resumed
training restores the parameter groups)."""

from _expect import bug, same

EXPECT = [
    bug("finder", stock="KeyError: 0", patched=lambda seen: seen["groups"][-2:] == [[2, 2], [2, 2]]),
    same("resume", "resuming restores the groups as on stock", {"groups": [[2, 2]]}, alone=True),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.lr = 1e-3
        self.backbone = torch.nn.Linear(1, 1)
        self.head = torch.nn.Linear(1, 1)
        self.groups = []

    def training_step(self, batch, batch_idx):
        if batch_idx == 0:
            self.groups.append([len(group["params"]) for group in self.trainer.optimizers[0].param_groups])
        return self.head(self.backbone(batch)).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.head.parameters(), lr=self.lr)


def fit(epochs, ckpt_path=None):
    scenario.pl.seed_everything(3)
    callbacks = [scenario.pl.callbacks.BackboneFinetuning(unfreeze_backbone_at_epoch=1)]
    if scenario.CASE == "finder":
        finder = scenario.pl.callbacks.LearningRateFinder
        callbacks.insert(0, finder(max_lr=1e-2, num_training_steps=4, update_attr=False, early_stop_threshold=None))
    model = Model()
    trainer = scenario.trainer(max_epochs=epochs, callbacks=callbacks)
    with scenario.observing_errors():
        trainer.fit(model, DataLoader(torch.arange(8.0).reshape(8, 1) / 8, batch_size=1), ckpt_path=ckpt_path)
    return model, trainer


if __name__ == "__main__":
    if scenario.CASE == "finder":
        model, _ = fit(3)
    else:
        path = "saved.ckpt"
        fit(2)[1].save_checkpoint(path)
        model, _ = fit(3, path)
    scenario.observe(groups=model.groups, head=model.head.weight, backbone=model.backbone.weight)
