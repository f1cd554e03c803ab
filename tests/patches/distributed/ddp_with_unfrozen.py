"""A backbone that is unfrozen after the start, in a job of two ranks under DDP. Cases: ``hand`` (within an epoch),
``accumulated`` (so, between two batches that make one step), ``normed`` (so, with batch norm in the backbone), ``one``
(so, in one rank), ``untrained`` (so, and in no optimizer), ``callback`` (BackboneFinetuning); with the suffix ``-lr``
the backbone is never frozen, and has a learning rate of 0 at first."""

from _expect import bug, fixed, whole_run


def are_alike(ranks):
    return len(ranks) == 2 and all(ranks[0][name] == ranks[1][name] for name in ("backbone", "head"))


def _stay_equal(result):
    return are_alike(result.observations) and [rank["warnings"] for rank in result.observations] == [[], []]


EXPECT = [
    bug(
        ["hand", "normed"],
        stock=whole_run(lambda result: result.ok and (not are_alike(result.observations))),
        patched=whole_run(lambda result: are_alike(result.observations)),
        like="{}-lr",
        compare=("backbone", "head"),
    ),
    fixed(
        "callback",
        "ranks stay equal without a warning",
        stock=whole_run(lambda result: result.ok and not are_alike(result.observations)),
        patched=whole_run(_stay_equal),
        on=("2.0.0", "2.6.6"),
    ),
    fixed(
        "accumulated",
        "ranks stay equal without a warning",
        stock=whole_run(lambda result: result.ok and not are_alike(result.observations)),
        patched=whole_run(_stay_equal),
    ),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

CASE, _, LR = scenario.CASE.partition("-")


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Sequential(torch.nn.Linear(4, 4))
        if CASE == "normed":
            self.backbone.append(torch.nn.BatchNorm1d(4))
        self.head = torch.nn.Linear(4, 2)
        self.backbone.requires_grad_(bool(LR) or CASE == "callback")

    def training_step(self, batch, batch_idx):
        return self.head(self.backbone(batch)).pow(2).mean()

    def on_train_batch_start(self, batch, batch_idx):
        if CASE != "callback" and (self.current_epoch, batch_idx) == (1, 1):
            self.backbone.requires_grad_(True)
            for group in self.optimizers().param_groups:
                group["lr"] = 0.1

    def configure_optimizers(self):
        groups = [{"params": self.head.parameters()}]
        if CASE not in ("callback", "untrained"):
            groups.append({"params": self.backbone.parameters(), "lr": 0.0})
        return torch.optim.SGD(groups, lr=0.1)


if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    model = Model()
    callbacks = scenario.pytorch("callbacks")
    trainer = scenario.trainer(
        devices=1 if CASE == "one" else 2,
        strategy="ddp",
        max_epochs=3,
        accumulate_grad_batches=2 if CASE == "accumulated" else 1,
        callbacks=[callbacks.BackboneFinetuning(unfreeze_backbone_at_epoch=1)] if CASE == "callback" else [],
    )
    with scenario.observing_warnings():
        trainer.fit(model, DataLoader(torch.randn(16, 4), batch_size=2))
    scenario.observe(backbone=[*model.backbone.parameters()], head=model.head.weight)
