"""With torch 2.0 and later, Lightning 1.5 to 1.8.3 refuses torch's learning rate schedulers."""

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
