"""Programs that are broken on several ranks: ``python broken_ranks.py CASE``, where ``BROKEN_SHIM=1`` imports the shim.

A case is a fault and words with dashes between, as ``stops-logged``. Two ranks train together until rank 1 does what
rank 0 does not, in its fourth batch. ``BROKEN_BACKEND=nccl`` takes two GPUs.

Faults: ``nothing``, ``uneven`` (rank 0 has a batch less), ``raises``, ``exits``, ``killed``, ``stops`` (should_stop),
``skips`` (training_step returns None), ``ends_epoch`` (on_train_batch_start returns -1), ``logs`` (a value more),
``gathers``, ``waits`` (a barrier), ``saves`` (a checkpoint).

Words: ``plain`` (no buffers, which DDP would broadcast), ``sized`` (the data tell a length, which is wrong on rank 0),
``logged`` and ``each`` (the loss is logged with sync_dist, by epoch or by step), ``validated`` and ``evaluated`` (the
fault strikes in the validation, of fit or by itself), ``searched`` (in a learning rate search), ``kept`` (with a
ModelCheckpoint), ``static`` (a static graph and manual optimization), ``fabric`` and ``parts`` (a loop of Fabric, where
parts of the module are called).
"""

import os

if os.environ.get("BROKEN_SHIM") == "1":
    import lightning_patches  # noqa: F401

import importlib
import signal
import sys
import warnings
from datetime import timedelta
from pathlib import Path

import torch

COLLECTIVES = ("all_gather", "all_gather_object", "all_reduce", "barrier", "broadcast", "broadcast_object_list")
seen: list = []


def _noted(name, function):
    def noted(*args, **kwargs):
        sent = args[1] if name.startswith("all_gather") else args[0] if args else None
        what = f" {sent.dtype}{list(sent.shape)}" if isinstance(sent, torch.Tensor) else ""
        seen.append(name + what)
        return function(*args, **kwargs)

    return noted


for name in (*COLLECTIVES, "monitored_barrier", "_broadcast_coalesced"):
    setattr(torch.distributed, name, _noted(name, getattr(torch.distributed, name)))

NAMESPACE = os.environ.get("SCENARIO_NAMESPACE", "lightning")
pl = importlib.import_module("lightning.pytorch" if NAMESPACE == "lightning" else NAMESPACE)
fabric = importlib.import_module("lightning.fabric" if NAMESPACE == "lightning" else "lightning_fabric")
FAULT, *WORDS = sys.argv[1].split("-")
OUT = Path(os.environ.get("BROKEN_OUT", "."))
GPU = os.environ.get("BROKEN_BACKEND", "gloo") == "nccl"
RANKS = {"accelerator": "gpu" if GPU else "cpu", "devices": 2}
DDP = {"start_method": "fork", "process_group_backend": "nccl" if GPU else "gloo", "timeout": timedelta(minutes=10)}
BATCHES = 6
warnings.filterwarnings("ignore")
torch.set_num_threads(1)


def rank():
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def strike(trainer, batch_idx, value):
    """Run the fault in rank 1. Return ``None`` to skip the batch."""
    if rank() != 1 or batch_idx != 3:
        return value
    (OUT / "struck").touch()
    if FAULT == "raises":
        raise ValueError("on purpose")
    if FAULT == "exits":
        sys.exit(3)
    if FAULT == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "gathers":
        trainer.strategy.all_gather(torch.ones(1, device=value.device))
    if FAULT == "waits":
        trainer.strategy.barrier()
    if FAULT == "saves":
        trainer.save_checkpoint(OUT / "of_one_rank.ckpt")
    if FAULT == "stops":
        trainer.should_stop = True
    return {"skips": None, "ends_epoch": -1}.get(FAULT, value)


class Data(torch.utils.data.IterableDataset):
    """The same number of batches for each rank; with the fault ``uneven``, one less for rank 0."""

    def __iter__(self):
        torch.manual_seed(rank())
        for _ in range(BATCHES - (FAULT == "uneven" and rank() == 0)):
            yield torch.randn(4, 4)
        if FAULT == "uneven":
            (OUT / "struck").touch()


class DataOfKnownLength(Data):
    def __len__(self):
        return BATCHES


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        buffers = [] if "plain" in WORDS else [torch.nn.BatchNorm1d(16)]
        self.lr, self.automatic_optimization = 0.1, "static" not in WORDS
        self.layer = torch.nn.Sequential(torch.nn.Linear(4, 16), *buffers, torch.nn.Linear(16, 1))

    def _loss(self, batch):
        return self.layer(batch).pow(2).mean()

    def on_train_batch_start(self, batch, batch_idx):
        return strike(self.trainer, batch_idx, None) if FAULT == "ends_epoch" else None

    def training_step(self, batch, batch_idx):
        loss = self._loss(batch)
        if "logged" in WORDS:
            self.log("loss", loss, sync_dist=True, on_step=False, on_epoch=True)
        if "each" in WORDS:
            self.log("each", loss, sync_dist=True, on_step=True, on_epoch=True)
            self.log("sum", loss, sync_dist=True, reduce_fx="sum")
        if FAULT == "logs" and rank() == 1:
            (OUT / "struck").touch()
            self.log("more", loss, sync_dist=True, on_step="each" in WORDS, on_epoch=True)
        loss = loss if "validated" in WORDS else strike(self.trainer, batch_idx, loss)
        if "static" in WORDS and loss is not None:
            self.manual_backward(loss)
            self.optimizers().step()
            self.optimizers().zero_grad()
        return loss

    def validation_step(self, batch, batch_idx):
        loss = self._loss(batch)
        self.log("val", loss, sync_dist=True)
        if {"validated", "evaluated"} & {*WORDS} and not self.trainer.sanity_checking:
            strike(self.trainer, batch_idx, loss)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


def train_with_trainer():
    callbacks = [Notes()]
    if "kept" in WORDS:
        callbacks.append(pl.callbacks.ModelCheckpoint(OUT, monitor="val", save_last=True))
    if "searched" in WORDS:
        callbacks.append(pl.callbacks.LearningRateFinder(num_training_steps=5))
    trainer = pl.Trainer(
        strategy=pl.strategies.DDPStrategy(**DDP, static_graph="static" in WORDS), **RANKS, max_epochs=2,
        callbacks=callbacks, logger=False, enable_checkpointing="kept" in WORDS, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=OUT, use_distributed_sampler=False,
    )  # fmt: skip
    data = DataOfKnownLength if "sized" in WORDS else Data
    loaders = [torch.utils.data.DataLoader(data(), batch_size=None) for _ in range(2)]
    model = Model()
    if "evaluated" in WORDS:
        trainer.validate(model, loaders[1], verbose=False)
    else:
        trainer.fit(model, *loaders)


class Parts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 16), torch.nn.Linear(16, 1)

    def forward(self, batch):
        return self.last(self.first(batch))


def train_with_fabric(fabric):
    whole = Parts()
    model, optimizer = fabric.setup(whole, torch.optim.SGD(whole.parameters(), lr=0.1))
    for batch_idx, batch in enumerate(Data()):
        batch = fabric.to_device(batch)
        loss = (model.last(model.first(batch)) if "parts" in WORDS else model(batch)).pow(2).mean()
        if strike(fabric, batch_idx, loss) is not None:
            fabric.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    write_collectives(fabric.global_rank)


def write_collectives(rank_of_this):
    (OUT / f"collectives{rank_of_this}").write_text("\n".join(seen))


class Notes(pl.Callback):
    def teardown(self, trainer, model, stage):
        write_collectives(trainer.global_rank)


if __name__ == "__main__":
    if "fabric" in WORDS:
        fabric.Fabric(strategy=fabric.strategies.DDPStrategy(**DDP), **RANKS).launch(train_with_fabric)
    else:
        train_with_trainer()
    print("ended well", flush=True)
