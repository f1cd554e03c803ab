"""configure_optimizers returns an LRSchedulerConfig, and its scheduler is refused. Cases: ``object``, ``dict``,
``vars`` (the workaround: the object's entries), each with ``manual-`` in front for manual optimization, and ``own`` (a
scheduler class of the program)."""

from _expect import bug, same

EXPECT = [
    *[
        bug(
            f"{kind}object",
            stock=lambda seen: "'LRSchedulerConfig' object has no attribute" in seen.get("error", ""),
            like=f"{kind}dict",
        )
        for kind in ("", "manual-")
    ],
    same(["dict", "vars", "own", "manual-vars"], "scheduler that was accepted is unchanged"),
]

import _scenario as scenario
import torch

Config = scenario.pytorch("utilities.types").LRSchedulerConfig
KIND = scenario.CASE.rpartition("-")[2]


class Own(torch.optim.lr_scheduler.StepLR):
    pass


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = not scenario.CASE.startswith("manual")
        self.rates = []

    def training_step(self, batch, batch_idx):
        self.rates.append(self.optimizers().param_groups[0]["lr"])
        loss = super().training_step(batch, batch_idx)["loss"]
        if not self.automatic_optimization:
            self.optimizers().step()
            self.lr_schedulers().step()
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
        scheduler = (Own if KIND == "own" else torch.optim.lr_scheduler.StepLR)(optimizer, 1, 0.5)
        if KIND == "own":
            return [optimizer], [scheduler]
        if KIND == "dict":
            return [optimizer], [{"scheduler": scheduler, "interval": "step", "frequency": 2}]
        config = Config(scheduler=scheduler, interval="step", frequency=2)
        return [optimizer], [vars(config) if KIND == "vars" else config]


if __name__ == "__main__":
    model = Model()
    trainer = scenario.trainer(max_epochs=1, limit_train_batches=6, limit_val_batches=0)
    with scenario.observing_errors():
        trainer.fit(model)
    scenario.observe(rates=model.rates)
