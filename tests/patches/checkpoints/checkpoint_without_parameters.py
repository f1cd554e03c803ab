"""A module without parameters is saved, and loaded from its checkpoint. CASE "lost" and "lost-loosely": the module has
a parameter, and the file has lost it; the latter with strict=False."""

from _expect import bug, same

REFUSED = "contains no parameters."

EXPECT = [
    bug(stock=REFUSED, patched={"value": 3, "device": "cpu"}),
    same("lost", "file without weights is refused", "Missing key(s) in state_dict", on=("2.0.2", "2.0.9")),
    same("lost-loosely", "file without weights is refused", REFUSED, on=("2.0.2", "2.0.9")),
]

import _scenario as scenario
import torch


class Baseline(scenario.pl.LightningModule):
    def __init__(self, value=1):
        super().__init__()
        self.save_hyperparameters()
        if scenario.CASE:
            self.weight = torch.nn.Parameter(torch.ones(1))

    def test_step(self, batch, batch_idx):
        self.log("loss", (batch - self.hparams.value).mean())


if __name__ == "__main__":
    path = "baseline.ckpt"
    trainer = scenario.trainer()
    trainer.test(Baseline(3), torch.utils.data.DataLoader(torch.ones(2, 1)), verbose=False)
    trainer.save_checkpoint(path)
    if scenario.CASE:
        torch.save({**torch.load(path), "state_dict": {}}, path)
    with scenario.observing_errors():
        loaded = Baseline.load_from_checkpoint(path, **({"strict": False} if scenario.CASE == "lost-loosely" else {}))
        scenario.observe(value=loaded.hparams.value, device=str(loaded.device))
