"""Two ranks of a Trainer that load in turns, started by Lightning's launcher. Argument: "waits" or "dies".

Rank 0 enters first, and rank 1 arrives while rank 0 is inside. Then rank 0 continues, or is killed. They load in a
block, or with ``load_from_checkpoint`` if the variable is set.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch

import lightning_patches

PATH = f"rank{os.environ.get('LOCAL_RANK', '0')}.ckpt"


class Part(pl.LightningModule):
    loading = False

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        if self.loading:
            load()


class Model(pl.LightningModule):
    def setup(self, stage: str) -> None:
        deadline = time.monotonic() + 60
        while self.global_rank == 1 and not os.path.exists("inside") and time.monotonic() < deadline:
            time.sleep(0.01)
        if os.environ.get("LIGHTNING_PATCHES_RANK_BY_RANK"):
            torch.save({"state_dict": Part().state_dict(), "pytorch-lightning_version": pl.__version__}, PATH)
            Part.loading = True
            self.part = Part.load_from_checkpoint(PATH)
        else:
            with lightning_patches.rank_by_rank(timeout=60):
                load()
            self.part = Part()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.part.layer(batch).sum()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def load() -> None:
    print("inside from", time.monotonic(), flush=True)
    Path("inside").touch()
    time.sleep(1.5)
    if "dies" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    print("inside until", time.monotonic(), flush=True)


if __name__ == "__main__":
    trainer = pl.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_steps=2, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(8, 8)))
    if torch.distributed.is_initialized():  # torch 2.13's gloo aborts 1 in 20 interpreters that exit with a group
        torch.distributed.destroy_process_group()
    print("done", flush=True)
