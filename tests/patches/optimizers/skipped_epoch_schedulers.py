"""on_train_batch_start returns -1, and the schedulers are not stepped at the end of that epoch. Cases: ``epoch``,
``step`` (the scheduler's interval), ``plateau`` (a scheduler that follows a metric), ``whole`` (no epoch is skipped),
``error`` (training_step itself raises StopIteration), ``by hand`` (the program steps the scheduler at the end of each
epoch)."""

from _expect import bug, same

EXPECT = [
    bug(["epoch", "plateau"], stock=lambda seen: len(set(seen["rates"])) == 1),
    same(["whole", "error"], "other epochs are unchanged", alone=True),
    same("step", "fixed release is unchanged", alone=True, on="2.6.6"),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.rates, self.trained = [], 0

    def on_train_epoch_start(self):
        self.rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])

    def on_train_batch_start(self, batch, batch_idx):
        return -1 if batch_idx == 2 and scenario.CASE not in ("whole", "error") else None

    def on_train_epoch_end(self):
        if scenario.CASE == "by hand":
            self.lr_schedulers().step()

    def training_step(self, batch, batch_idx):
        if scenario.CASE == "error" and batch_idx == 2:
            raise StopIteration
        self.trained += 1
        self.log("constant", torch.tensor(1.0), on_step=False, on_epoch=True)
        return self.layer(batch).pow(2).mean()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.01)
        if scenario.CASE == "plateau":
            scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "constant"}}
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        interval = "step" if scenario.CASE == "step" else "epoch"
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": interval}}


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    trainer = scenario.trainer(max_epochs=4)
    with scenario.observing_warnings():
        trainer.fit(model, DataLoader(torch.arange(6.0).reshape(6, 1), batch_size=1))
    scenario.observe(rates=model.rates, trained=model.trained, weight=model.layer.weight, epochs=trainer.current_epoch)
