"""StochasticWeightAveraging with ``max_epochs=-1``. Averages from the second epoch on, ends by ``max_steps``. CASE
"batch-norm": the model has such a layer. CASE "early": the run ends before averaging begins. CASE "fraction":
``swa_epoch_start`` is a fraction, of an unknown number of epochs. CASE "own": a subclass of the callback handles such
runs itself."""

from _expect import bug, patched, same


def as_trained(observations):
    return [{**rank, "warnings": None} for rank in observations]


EXPECT = [
    bug(
        stock=lambda seen: seen["steps"] == 8 and seen["as_trained"] and (not seen["averaged"]),
        compare=("steps", "weights", "averaged"),
    ),
    bug(
        "batch-norm",
        stock={"steps": 0},
        patched=lambda seen: seen["steps"] == 8 and seen["averaged"],
        compare=("steps", "weights", "averaged"),
    ),
    same(
        "own",
        "subclass that finishes averaging itself is unchanged",
        lambda seen: seen["averaged"],
        on=("2.0.0", "2.5.2"),
    ),
    # 2.6.1 keeps weights that are not those of the training.
    same("early", "run that ends early keeps its weights", {"as_trained": True}, compare=as_trained),
    # 2.6.1 raises an error.
    same("fraction", "fraction of unknown epochs averages nothing", {"as_trained": True}, compare=as_trained),
    patched(
        "fraction",
        "fraction of unknown epochs is named in a warning",
        lambda seen: any("Pass the number of an epoch" in warning for warning in seen["warnings"]),
    ),
]

import _scenario as scenario
import torch
from _model import Module
from torch.utils.data import DataLoader

SWA = scenario.pl.callbacks.StochasticWeightAveraging
START = {"early": 10, "fraction": 0.5}.get(scenario.CASE, 2)


class Model(Module):
    def __init__(self):
        super().__init__()
        norm = [torch.nn.BatchNorm1d(3)] if scenario.CASE == "batch-norm" else []
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 3), *norm, torch.nn.Linear(3, 1))
        self.to_average = []

    def weights(self):
        return torch.cat([p.detach().flatten() for p in self.parameters()])

    def on_train_epoch_start(self):
        if self.current_epoch >= 1:
            self.to_average.append(self.weights())

    def training_step(self, batch, batch_idx):
        return self.layers(batch).pow(2).mean()

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.trained = self.weights()


class Own(SWA):
    transferred = 0
    swa_end = 1000

    def on_train_end(self, trainer, pl_module):
        super().on_train_end(trainer, pl_module)
        self.transfer_weights(self._average_model, pl_module)

    @staticmethod
    def transfer_weights(src, dst):
        Own.transferred += 1
        SWA.transfer_weights(src, dst)


if __name__ == "__main__":
    scenario.pl.seed_everything(5)
    model = Model()
    callback = Own if scenario.CASE == "own" else SWA
    trainer = scenario.trainer(
        max_epochs=-1, max_steps=8, callbacks=[callback(swa_lrs=0.05, swa_epoch_start=START, annealing_epochs=1)]
    )
    with scenario.observing_warnings():
        trainer.fit(model, DataLoader(torch.rand(8, 2), batch_size=4))
    average = torch.stack(model.to_average).mean(0) if model.to_average else torch.zeros(())
    scenario.observe(
        steps=trainer.global_step,
        transferred=Own.transferred,
        weights=model.weights(),
        averaged=torch.allclose(model.weights(), average),
        as_trained=trainer.global_step > 0 and torch.equal(model.weights(), model.trained),
    )
