"""A training script in which every process reports if the patches are applied.

    train.py ddp            one fit on two ranks, with the launcher of the environment
    train.py NAME NAME ...  a fit on two ranks for each of ddp_fork, ddp_spawn, ddp_forkserver
    train.py loaders        DataLoader workers with each start method

Each process writes OUT/<what>-<rank>.json.
"""

import os

if os.environ.get("PROBE_WAY") == "import":
    import lightning_patches  # noqa: F401  the one line that a user adds on top of a script

import atexit
import json
import multiprocessing
import sys
import warnings

warnings.filterwarnings("ignore")

import lightning.pytorch as pl
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, Dataset, TensorDataset, get_worker_info


@atexit.register
def leave():
    """torch 2.13's gloo aborts 1 in 20 interpreters that end with a group: this one, and those that it spawns."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def look():
    """Return the applied patches of this process, from the live functions and from the report."""
    from lightning.pytorch.loops.fetchers import _DataFetcher
    from lightning.pytorch.trainer.connectors.logger_connector.result import _ResultCollection

    patches = sys.modules.get("lightning_patches")
    verdicts = {}
    if patches is not None:
        verdicts = {entry.patch: entry.verdict for entry in patches.report() if entry.namespace == "lightning"}
    return {
        "live": [
            *getattr(_ResultCollection.update_metrics, "__lightning_patches__", ()),
            *getattr(_DataFetcher.reset, "__lightning_patches__", ()),
        ],
        "verdicts": [verdicts.get("logged-metrics-device"), verdicts.get("dataloader-error-unmasked")],
        "pid": os.getpid(),
        "parent": os.getppid(),
        "start_method": type(multiprocessing.current_process()).__name__,
        "host": os.environ.get("PROBE_HOST", ""),
    }


def tell(what, rank):
    path = os.path.join(os.environ["PROBE_OUT"], f"{what}-{rank}.json")
    with open(path, "w") as file:
        json.dump(look(), file)


class Model(pl.LightningModule):
    def __init__(self, what):
        super().__init__()
        self.what = what
        self.layer = torch.nn.Linear(4, 1)

    def on_train_start(self):
        assert torch.distributed.get_world_size() == 2
        tell(self.what, torch.distributed.get_rank())

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Asking(Dataset):
    """A dataset of two items, whose worker writes a report."""

    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 2

    def __getitem__(self, index):
        tell(self.what, get_worker_info().id)
        return index


def fit(what):
    strategy = DDPStrategy(start_method="forkserver") if what == "ddp_forkserver" else what
    nodes = int(os.environ.get("PROBE_NODES", "1"))
    trainer = pl.Trainer(
        strategy=strategy, accelerator="cpu", devices=2 // nodes, num_nodes=nodes, max_steps=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Model(what), DataLoader(TensorDataset(torch.ones(4, 4)), batch_size=1))


def load(start_method):
    loader = DataLoader(
        Asking(f"loader_{start_method}"), batch_size=1, num_workers=1, multiprocessing_context=start_method
    )
    assert len(list(loader)) == 2


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if argument == "loaders":
            for method in ("fork", "spawn", "forkserver"):
                load(method)
        else:
            fit(argument)
