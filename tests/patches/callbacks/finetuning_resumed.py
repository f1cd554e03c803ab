"""Issue 21901: a training with BackboneFinetuning is resumed after the backbone was unfrozen.

Cases: ``resumed``; ``everything`` (the optimizer had all parameters from the start); ``before`` (resumed before the
    backbone is unfrozen); ``later`` (the new callback unfreezes later); ``own`` (a finetune_function that unfreezes in
    one epoch), ``again`` (one that unfreezes in each epoch), ``refrozen`` (one that freezes again), ``thawed`` (one
    that adds no parameter group), ``idle`` (one that never unfreezes, and an optimizer with a state for parameters that
    it never stepped); ``ranks`` (two ranks). With ``-by-hand`` behind it, the callback unfreezes the backbone when it
    is resumed.
"""

from _expect import bug, patched, same, warns

WARNING = "Unfreeze them in on_fit_start of your finetuning callback"
RELEASES = ("2.0.0", "2.6.6")

EXPECT = [
    bug(
        ["resumed", "everything"],
        stock=lambda seen: not seen["trained"] and (not seen["as_without_a_break"]),
        patched=lambda seen: seen["as_without_a_break"],
        like="{}-by-hand",
        compare=("trained", "as_without_a_break", "backbone", "head"),
    ),
    same(
        ["before", "again", "idle"],
        "run that is right is unchanged",
        {"as_without_a_break": True, "warnings": []},
        alone=True,
        on=RELEASES,
    ),
    # It is unknown if the freeze was intended.
    warns(
        "refrozen",
        "run that is right causes a warning",
        WARNING,
        stock={"as_without_a_break": True},
        alone=True,
        on=RELEASES,
    ),
    warns(
        ["later", "own", "thawed"],
        "run that cannot be fixed causes a warning",
        WARNING,
        stock={"as_without_a_break": False},
        alone=True,
        on=RELEASES,
    ),
    patched(
        "ranks",
        "jobs with several ranks get a warning",
        lambda seen: (
            not seen["trained"]
            and len(seen["warnings"]) == 1
            and "Never freeze them, and give them a parameter group with lr=0" in seen["warnings"][0]
        ),
        alone=True,
    ),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

CASE, BY_HAND, _ = scenario.CASE.partition("-by-hand")
callbacks = scenario.pytorch("callbacks")


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 2)

    def training_step(self, batch, batch_idx):
        return self.head(self.backbone(batch)).pow(2).mean()

    def configure_optimizers(self):
        if CASE in ("thawed", "idle"):
            return (torch.optim.Adam if CASE == "thawed" else torch.optim.Adagrad)(self.parameters(), lr=0.1)
        trained = self.parameters() if CASE == "everything" else filter(lambda p: p.requires_grad, self.parameters())
        return torch.optim.SGD(trained, lr=0.1)


class ByHand(callbacks.BackboneFinetuning):
    def on_fit_start(self, trainer, pl_module):
        super().on_fit_start(trainer, pl_module)
        if trainer.ckpt_path:
            self.make_trainable(pl_module.backbone)


class Own(callbacks.BaseFinetuning):
    def freeze_before_training(self, pl_module):
        self.freeze(pl_module.backbone)

    def finetune_function(self, pl_module, epoch, optimizer):
        if CASE == "thawed" and epoch == 1:
            self.make_trainable(pl_module.backbone)
        elif epoch == 1 and CASE != "idle":
            self.unfreeze_and_add_param_group(pl_module.backbone, optimizer, 0.05)
        if CASE == "again" and epoch > 1:
            self.make_trainable(pl_module.backbone)
        if CASE == "refrozen" and epoch == 2:
            self.freeze(pl_module.backbone)


def unchanged(epoch):
    return 1.0


def callback(resumed=False):
    if CASE in ("own", "again", "refrozen", "thawed", "idle"):
        return Own()
    at = {"before": 3, "later": 9 if resumed else 1}.get(CASE, 1)
    kind = ByHand if BY_HAND else callbacks.BackboneFinetuning
    return kind(unfreeze_backbone_at_epoch=at, backbone_initial_lr=0.05, lambda_func=unchanged)


def fit(epochs, **options):
    ranks = {"devices": 2, "strategy": "ddp"} if CASE == "ranks" else {}
    trainer = scenario.trainer(max_epochs=epochs, callbacks=[callback("ckpt_path" in options)], **ranks)
    scenario.pl.seed_everything(1)
    model = Model()
    data = torch.randn(16, 4, generator=torch.Generator().manual_seed(1))
    trainer.fit(model, DataLoader(data, batch_size=4), **options)
    return model, trainer


if __name__ == "__main__":
    path = "saved.ckpt"
    whole, _ = fit(5)
    _, trainer = fit(3)
    trainer.save_checkpoint(path)
    saved = torch.load(path, weights_only=False)["state_dict"]["backbone.weight"]
    with scenario.observing_warnings():
        resumed, trainer = fit(5, ckpt_path=path)
    scenario.observe(
        trained=not torch.equal(resumed.backbone.weight, saved),
        as_without_a_break=torch.equal(resumed.backbone.weight, whole.backbone.weight),
        backbone=resumed.backbone.weight,
        head=resumed.head.weight,
    )
