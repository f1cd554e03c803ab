"""Two CPU ranks, whose validation losses go apart, and ReduceLROnPlateau. Case ``synced``: logged with sync_dist."""

from _expect import bug, whole_run


def _differ(result):
    return len({rank["rate"] for rank in result.observations}) == 2


EXPECT = [bug(stock=whole_run(_differ), like="synced")]

import _scenario as scenario
import torch


class Model(scenario.boring_model()):
    def validation_step(self, batch, batch_idx):
        loss = torch.tensor(float(self.current_epoch)) * (3 if self.global_rank else -1)
        self.log("loss", loss, sync_dist=scenario.CASE == "synced")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), 0.1)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "loss"}}


if __name__ == "__main__":
    trainer = scenario.trainer(devices=2, strategy="ddp", max_epochs=3, limit_train_batches=1, limit_val_batches=1)
    trainer.fit(Model())
    scenario.observe(rate=trainer.optimizers[0].param_groups[0]["lr"])
