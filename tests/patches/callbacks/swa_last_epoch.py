"""StochasticWeightAveraging averages the weights at the start of each epoch, so the last epoch has no effect. Cases:
``plain``, ``subclass`` (one that averages at the end of each epoch)."""

from _expect import bug, same

EXPECT = [
    bug("plain", stock={"has_last": False}, patched={"has_last": True}, like="subclass"),
    same("subclass", "subclass that averages epoch ends is unchanged", alone=True),
]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

SWA = scenario.pl.callbacks.StochasticWeightAveraging
CASE = scenario.CASE


class AtEnd(SWA):
    def on_train_epoch_start(self, trainer, pl_module):
        self._latest_update_epoch = trainer.current_epoch
        super().on_train_epoch_start(trainer, pl_module)

    def on_train_epoch_end(self, trainer, *args):
        if self.swa_start <= trainer.current_epoch <= self.swa_end:
            self.update_parameters(self._average_model, trainer.lightning_module, self.n_averaged, self._avg_fn)
        super().on_train_epoch_end(trainer, *args)


class Model(Linear):
    ends = []

    def training_step(self, batch, batch_idx):
        return (self.layer(batch) - 1).pow(2).mean()

    def on_train_epoch_end(self):
        self.ends.append(self.layer.weight.detach().clone())


if __name__ == "__main__":
    scenario.pl.seed_everything(5)
    model = Model()
    swa = (AtEnd if CASE == "subclass" else SWA)(0.05, swa_epoch_start=2)
    data = DataLoader(torch.rand(8, 2), batch_size=4)
    scenario.trainer(max_epochs=4, callbacks=swa).fit(model, data)
    mean = sum(model.ends[1:]) / 3  # swa_epoch_start counts from one
    scenario.observe(
        weights=list(model.parameters()), has_last=bool(torch.allclose(model.layer.weight, mean, atol=1e-6))
    )
