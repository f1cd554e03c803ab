"""LightningDataModule.load_from_checkpoint refuses map_location."""

from _expect import bug, same

SCALE = (2.5).hex()

EXPECT = [
    bug(stock="got multiple values for keyword argument 'map_location'", patched={"scale": SCALE, "mapped": ["cpu"]}),
    same("without", "call without map location is unchanged", {"scale": SCALE, "mapped": []}),
]

from pathlib import Path

import _scenario as scenario
import torch

mapped = []


class Data(scenario.pl.LightningDataModule):
    def __init__(self, scale=None):
        super().__init__()
        self.save_hyperparameters()

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.zeros(2, 32))


def note(storage, location):
    mapped.append(location)
    return storage


if __name__ == "__main__":
    path = Path("data.ckpt")
    trainer = scenario.trainer(max_steps=1, limit_val_batches=0)
    trainer.fit(scenario.BoringModel(), datamodule=Data(scale=2.5))
    trainer.save_checkpoint(path)
    with scenario.observing_errors():
        data = Data.load_from_checkpoint(path, **({} if scenario.CASE == "without" else {"map_location": note}))
    scenario.observe(scale=data.hparams.scale, mapped=sorted(set(mapped)))
