"""The learning rate that the LearningRateFinder callback set, and the one that the training uses. Cases: ``callback``,
``tuner``, ``no_update`` (``update_attr=False``), ``step_lr`` and ``lambda_lr`` (with a scheduler stepped at each step),
``hparams`` (the rate is a hyperparameter called ``rate``), ``ddp`` (two ranks on gloo), ``groups`` (as ``callback``;
observes warnings), ``groups_tuner`` (the same with the tuner), ``none`` (an optimizer that accepts None as its
rate)."""

import contextlib

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset

DDP = scenario.CASE == "ddp"


class WithoutRate(torch.optim.SGD):
    def step(self, closure=None):
        loss = closure()
        for parameter in self.param_groups[0]["params"]:
            parameter.data -= (self.param_groups[0]["lr"] or 0.01) * parameter.grad
        return loss


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        if scenario.CASE == "hparams":
            self.save_hyperparameters({"rate": 1e-3})
        else:
            self.lr = 1e-3
        self.layer = torch.nn.Linear(4, 1)
        self.searching, self.rates = True, []

    def current_rate(self):
        return self.hparams.rate if scenario.CASE == "hparams" else self.lr

    def training_step(self, batch, batch_idx):
        if not self.searching:
            self.rates.append([group["lr"] for group in self.trainer.optimizers[0].param_groups])
        return self.layer(batch[0]).pow(2).mean()

    def on_fit_start(self):  # comes after the callbacks' on_fit_start, where the finder runs
        self.searching = False

    def configure_optimizers(self):
        if scenario.CASE == "none":
            optimizer = WithoutRate(self.parameters(), lr=1.0)
            optimizer.param_groups[0]["lr"] = None
            return optimizer
        groups = [{"params": [self.layer.weight]}, {"params": [self.layer.bias], "lr": 5e-4}]
        optimizer = torch.optim.SGD(groups, lr=self.current_rate(), momentum=0.5)
        schedulers = torch.optim.lr_scheduler
        if scenario.CASE == "step_lr":
            scheduler = schedulers.StepLR(optimizer, step_size=2, gamma=0.5)
        elif scenario.CASE == "lambda_lr":
            scheduler = schedulers.LambdaLR(optimizer, lambda step: 0.5 ** (step // 2))
        else:
            return optimizer
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.arange(256.0).reshape(64, 4) / 256), batch_size=2)


if __name__ == "__main__":
    scenario.pl.seed_everything(7)
    model = Model()
    # In linear mode all releases suggest the same rate; 2.5.3 changed the suggestion of the exponential mode.
    options = {"mode": "linear", "max_lr": 0.1, "update_attr": scenario.CASE != "no_update"}
    if scenario.CASE == "hparams":
        options["attr_name"] = "rate"
    callbacks = scenario.pytorch("callbacks")
    by_callback = "tuner" not in scenario.CASE
    trainer = scenario.trainer(
        max_epochs=1,
        strategy="ddp" if DDP else "auto",
        devices=2 if DDP else 1,
        callbacks=[callbacks.LearningRateFinder(num_training_steps=20, **options)] if by_callback else [],
    )
    with scenario.observing_warnings() if "groups" in scenario.CASE else contextlib.nullcontext():
        if not by_callback:
            scenario.tuner(trainer).lr_find(model, num_training=20, **options)
        trainer.fit(model)
    scenario.observe(attribute=model.current_rate(), rates=model.rates, weight=model.layer.weight)
