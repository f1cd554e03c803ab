"""With torch 2.0 and later, Lightning 1.5 to 1.8.3 refuses torch's learning rate schedulers."""

from _expect import bug, fixed, patched

RELEASES = ("1.5.10", "1.6.5", "1.7.7", "1.8.3")

EXPECT = [
    bug(stock="doesn't follow PyTorch's LRScheduler API", fresh=True),
    fixed("", "scheduler is accepted", stock='The provided lr scheduler "<torch', fresh=True, on="1.5.10"),
    fixed("", "scheduler is accepted", stock="doesn't follow PyTorch's", fresh=True, on=("1.6.5", "1.8.3")),
    patched("", "scheduler is accepted", {"lr": 0.0125}, fresh=True, on="1.7.7"),
    patched("every step", "scheduler of each step is accepted", {"lr": 0.003457}, fresh=True, on=RELEASES),
    patched("plateau", "plateau is accepted", {"lr": 0.001}, fresh=True, on=RELEASES),
]

import _model_1x as user
import _scenario as scenario
from torch.optim import SGD, lr_scheduler


class Model(user.Model):
    def configure_optimizers(self):
        optimizer = SGD(self.parameters(), lr=0.1)
        if scenario.CASE == "plateau":
            plateau = lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=0)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": plateau, "monitor": "loss"}}
        if scenario.CASE == "every step":
            cycle = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=12)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": cycle, "interval": "step"}}
        return [optimizer], [lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]


if __name__ == "__main__":
    trainer = scenario.trainer(max_epochs=3)
    trainer.fit(Model())
    scenario.observe(lr=user.lr_of(trainer))
