"""PRs 18750, 19023: a run is resumed, and ModelCheckpoint tidies up.

Three runs go on from the first one: in its directory, in another one, and from a copy of its checkpoint.
"""

import os
import shutil
from pathlib import Path

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

pl = scenario.pytorch()
ModelCheckpoint = scenario.pytorch("callbacks").ModelCheckpoint
OUT = Path(os.environ.get("SCENARIO_OUT", "."))


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        self.log("score", float(self.current_epoch))
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(directory, epochs, resume=None, monitor=None):
    callback = ModelCheckpoint(
        dirpath=str(OUT / directory), filename="{epoch}", monitor=monitor, mode="max", save_top_k=1
    )
    trainer = scenario.trainer(enable_checkpointing=True, callbacks=[callback], max_epochs=epochs)
    trainer.fit(Model(), DataLoader(torch.rand(2, 2)), ckpt_path=resume)
    return callback.best_model_path


def files(directory):
    return sorted(path.name for path in (OUT / directory).iterdir())


if __name__ == "__main__":
    first = fit("best", 1, monitor="score")
    fit("best", 3, resume=first, monitor="score")
    scenario.observe(same_directory=files("best"))

    first = fit("old", 1)
    fit("new", 3, resume=first)
    scenario.observe(other_directory={name: files(name) for name in ("old", "new")})

    first = fit("origin", 1)
    (OUT / "elsewhere").mkdir()
    copy = shutil.copy(first, str(OUT / "elsewhere" / "copy.ckpt"))
    fit("newer", 3, resume=copy)
    scenario.observe(copied={name: files(name) for name in ("origin", "elsewhere", "newer")})
