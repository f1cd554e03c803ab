"""``load_from_checkpoint`` in a rank that torchrun started. Prints the start and the end of the model's creation.

With the argument "together" the creation lasts until both ranks create their models.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

if os.environ.get("IMPORT_FIRST"):
    import lightning_patches
import lightning.pytorch as pl
import torch

import lightning_patches  # noqa: F401

PATH = f"rank{os.environ['RANK']}.ckpt"


class Model(pl.LightningModule):
    loading = False

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        if self.loading:
            print("inside from", time.monotonic(), flush=True)
            Path(f"inside{os.environ['RANK']}").touch()
            deadline = time.monotonic() + (60 if "together" in sys.argv else 0)
            while len(list(Path().glob("inside[01]"))) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(1)
            print("inside until", time.monotonic(), flush=True)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    torch.save({"state_dict": Model().state_dict(), "pytorch-lightning_version": pl.__version__}, PATH)
    Model.loading = True
    with open("ready", "a") as file:  # the ranks share the directory and start to load together
        file.write("x")
    while os.path.getsize("ready") < 2:
        time.sleep(0.01)
    Model.load_from_checkpoint(PATH)
    print("done", flush=True)
