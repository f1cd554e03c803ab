"""A training on two ranks, started by Lightning's launchers.

Arguments: "sleeps" or "works" (the third step of rank one), the strategy, the accelerator, and the number of nodes.
"""

import atexit
import sys
import time
from typing import Any

import lightning.pytorch as pl
import torch

from lightning_patches.ranks import hang


@atexit.register
def leave() -> None:
    """Destroy the process group: torch 2.13's gloo aborts 1 in 20 interpreters that exit with one."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


class Model(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def on_train_start(self) -> None:
        if sys.argv[1] == "works":
            hang.watch_hangs(4, abort=True)  # start-up takes longer than that

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if sys.argv[1] == "sleeps" and batch_idx == 2 and self.global_rank == 1:
            time.sleep(100)
        time.sleep(0.4)  # more than four seconds in total
        return self.layer(batch).sum()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    nodes = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    trainer = pl.Trainer(
        accelerator=sys.argv[3], devices=2 // nodes, num_nodes=nodes, strategy=sys.argv[2], max_epochs=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(30, 8)))
    if trainer.is_global_zero:
        print("trained", flush=True)
