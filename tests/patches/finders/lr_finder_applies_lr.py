"""The learning rate that the LearningRateFinder callback set, and the one that the training uses. Cases: ``callback``,
``tuner``, ``no_update`` (``update_attr=False``), ``step_lr``, ``lambda_lr``, ``warm_up``, ``cyclic``, ``nested`` (with
a scheduler stepped at each step), ``hparams`` (the rate is a hyperparameter called ``rate``), ``ddp`` (two ranks on
gloo), ``scaled`` (``lambda_lr``, where the program scales the rates, too), ``none`` (an optimizer that accepts None as
its rate), and ``by_hand_...`` (without the finder, the model has the rate that it suggests)."""

from _expect import bug, fixed, same, same_calls, whole_run

TOGETHER = "lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr"
INITIAL = (1e-3).hex()


def half(rate):
    return (float.fromhex(rate) / 2).hex()


def keeps_old_rates(result):
    return [rank["rates"][0] for rank in result.observations] == [[INITIAL, half(INITIAL)]] * 2


EXPECT = [
    bug(
        "callback",
        stock=lambda seen: seen["attribute"] != INITIAL and seen["rates"][0][1] != half(seen["attribute"]),
        patched=lambda seen: seen["rates"] == [[seen["attribute"], half(seen["attribute"])]] * 32,
        like="by_hand_{}",
    ),
    same(["tuner", "no_update", "none"], "run without the bug is unchanged", toggle=TOGETHER, on=("2.5.3", "2.6.6")),
    same_calls("asked_rate", "learning rate property is set once", on="2.5.2"),
    fixed(
        ["hparams", "step_lr", "lambda_lr", "warm_up", "cyclic", "nested", "scaled"],
        "training equals a run whose rate is set by hand",
        like="by_hand_{}",
        alone=True,
        on=("2.5.3", "2.6.6"),
    ),
    fixed(
        "ddp",
        "both ranks train with the found rate",
        stock=whole_run(keeps_old_rates),
        like="by_hand_{}",
        toggle=TOGETHER,
        on="2.5.3",
    ),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset

BY_HAND = scenario.CASE.startswith("by_hand_")
CASE = scenario.CASE[len("by_hand_") :] if BY_HAND else scenario.CASE
DDP = CASE == "ddp"
RATE = float.fromhex("0x1.c28f5e936f6f5p-5") if BY_HAND else 1e-3


class WithoutRate(torch.optim.SGD):
    def step(self, closure=None):
        loss = closure()
        for parameter in self.param_groups[0]["params"]:
            parameter.data -= (self.param_groups[0]["lr"] or 0.01) * parameter.grad
        return loss


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        if CASE == "hparams":
            self.save_hyperparameters({"rate": RATE})
        else:
            self.lr = RATE
        self.layer = torch.nn.Linear(4, 1)
        self.searching, self.rates = not BY_HAND, []

    def current_rate(self):
        return self.hparams.rate if CASE == "hparams" else self.lr

    def training_step(self, batch, batch_idx):
        if not self.searching:
            self.rates.append([group["lr"] for group in self.trainer.optimizers[0].param_groups])
        return self.layer(batch[0]).pow(2).mean()

    def on_fit_start(self):  # comes after the callbacks' on_fit_start, where the finder runs
        self.searching = False
        if CASE == "scaled" and not BY_HAND:
            scheduler, factor = self.lr_schedulers(), self.lr / RATE
            scheduler.base_lrs = [rate * factor for rate in scheduler.base_lrs]

    def configure_optimizers(self):
        if CASE == "none":
            optimizer = WithoutRate(self.parameters(), lr=1.0)
            optimizer.param_groups[0]["lr"] = None
            return optimizer
        groups = [{"params": [self.layer.weight]}, {"params": [self.layer.bias], "lr": self.current_rate() / 2}]
        optimizer = torch.optim.SGD(groups, lr=self.current_rate(), momentum=0.5)
        schedulers = torch.optim.lr_scheduler
        if CASE == "step_lr":
            scheduler = schedulers.StepLR(optimizer, step_size=2, gamma=0.5)
        elif CASE in ("lambda_lr", "scaled"):
            scheduler = schedulers.LambdaLR(optimizer, lambda step: 0.5 ** (step // 2))
        elif CASE == "warm_up":
            scheduler = schedulers.LinearLR(optimizer, 0.125, total_iters=4)
        elif CASE == "cyclic":
            scheduler = schedulers.CyclicLR(optimizer, self.lr / 8, self.lr, step_size_up=4, cycle_momentum=False)
        elif CASE == "nested":
            warm_up = schedulers.LinearLR(optimizer, 0.125, total_iters=4)
            after = schedulers.CosineAnnealingLR(optimizer, 20)
            scheduler = schedulers.SequentialLR(optimizer, [warm_up, after], [4])
        else:
            return optimizer
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.arange(256.0).reshape(64, 4) / 256), batch_size=2)


if __name__ == "__main__":
    scenario.pl.seed_everything(7)
    model = Model()
    # In linear mode all releases suggest the same rate; 2.5.3 changed the suggestion of the exponential mode.
    options = {"mode": "linear", "max_lr": 0.1, "update_attr": CASE != "no_update"}
    if CASE == "hparams":
        options["attr_name"] = "rate"
    callbacks = scenario.pytorch("callbacks")
    by_callback = CASE != "tuner" and not BY_HAND
    trainer = scenario.trainer(
        max_epochs=1,
        strategy="ddp" if DDP else "auto",
        devices=2 if DDP else 1,
        callbacks=[callbacks.LearningRateFinder(num_training_steps=20, **options)] if by_callback else [],
    )
    if CASE == "tuner":
        scenario.tuner(trainer).lr_find(model, num_training=20, **options)
    trainer.fit(model)
    scenario.observe(attribute=model.current_rate(), rates=model.rates, weight=model.layer.weight)
