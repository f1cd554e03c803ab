"""PRs 20825 and 21487: SIGTERM to ranks that were started as torchrun starts them, at known places of a fit.

The program starts itself as two ranks, and ends them if they make no progress for a while. A rank
sends the signal to itself, so that it always arrives in the same batch.

Cases: ``one`` (rank 1 gets SIGTERM, in training), ``plain`` (likewise, without a checkpoint on preemption), ``first``
(rank 0), ``all`` (both, some batches apart), ``validation``, ``sanity``, ``uneven`` (in a validation that is longer
on rank 0), ``epoch`` (in the training's last batch; a test follows), ``failed`` (rank 0 fails after rank 1 got the
signal), ``testing`` (in trainer.test), ``late`` (no signal: rank 1 is longer at the end of the
training), ``single`` (one process), ``callback`` (the recommended usage: SIGUSR1, and a callback that all-reduces a
flag).
"""

from _expect import bug, same, whole_run


def hangs(result):
    return bool(result.observations) and "hangs" in result.observations[0]["statuses"]


EXPECT = [
    # Not compared: at which batch the ranks leave is a matter of time; that it is the same one is compared.
    bug("plain", stock=whole_run(hangs), like="callback", compare=("statuses", "together")),
    same("single", "single process is unchanged", {"statuses": [0], "received": [True]}, alone=True),
]

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, Dataset, TensorDataset

case, rank = scenario.CASE, int(os.environ.get("RANK", "0"))
WORLD = 1 if case == "single" else 2
OUT = Path.cwd()
PATIENCE, LIMIT = 25, 140
"""Seconds, after the signal and in total, after which a rank counts as hanging."""
SIGNALLED = rank in {"first": (0,), "all": (0, 1), "single": (0,)}.get(case, (1,))
seen = {"batches": 0, "evaluated": 0, "received": None}


def signal_once(condition, kind=signal.SIGTERM):
    if condition and SIGNALLED and not seen.get("sent"):
        seen["sent"] = True
        (OUT / f"signal-{rank}").touch()
        os.kill(os.getpid(), kind)


class Model(Linear):
    def training_step(self, batch, batch_idx):
        seen["batches"] += 1
        time.sleep(0.01)
        in_training = case in ("one", "plain", "first", "all", "single", "failed")
        signal_once(in_training and batch_idx == 3 + 5 * rank)
        signal_once(case == "epoch" and batch_idx == 7)
        signal_once(case == "callback" and batch_idx == 8, signal.SIGUSR1)
        if case == "failed" and rank == 0 and batch_idx == 9:
            raise RuntimeError("rank 0 fails")
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        seen["evaluated"] += 1
        time.sleep(0.01)
        sanity = self.trainer.sanity_checking
        signal_once((case == "sanity" and sanity) or (case in ("validation", "uneven") and not sanity))
        self.log("loss", self.layer(batch[0]).sum(), sync_dist=True)

    def test_step(self, batch, batch_idx):
        seen["evaluated"] += 1
        time.sleep(0.01)
        signal_once(case == "testing" and batch_idx == 3)


class Witness(scenario.pl.Callback):
    def on_train_end(self, trainer, model):
        if case == "late" and rank == 1:
            time.sleep(6)

    def on_exception(self, trainer, model, exception):
        seen["received"] = trainer.received_sigterm


class Recommended(scenario.pl.Callback):
    asked = False

    def on_fit_start(self, trainer, model):
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "asked", True))

    def on_train_batch_end(self, trainer, model, outputs, batch, batch_idx):
        flag = torch.tensor([float(self.asked)])
        torch.distributed.all_reduce(flag)
        if flag.item():
            raise scenario.pytorch("utilities.exceptions").SIGTERMException(143)


class OfRank(Dataset):
    def __len__(self):
        return 200 if rank == 0 else 60

    def __getitem__(self, index):
        return (torch.ones(2),)


def loader(size):
    return DataLoader(TensorDataset(torch.ones(WORLD * size, 2)), batch_size=1)


def train():
    scenario.pl.seed_everything(1)
    length = {"epoch": 8, "validation": 4, "uneven": 4, "late": 2}.get(case, 500)
    preemption = scenario.pl.callbacks.OnExceptionCheckpoint(str(OUT), filename="preempted")
    callbacks = [Witness(), *([] if case in ("failed", "plain") else [preemption])]
    callbacks += [Recommended()] if case == "callback" else []
    options = {"use_distributed_sampler": False} if case == "uneven" else {}
    if WORLD > 1:
        options.update(devices=WORLD, strategy=scenario.pl.strategies.DDPStrategy(process_group_backend="gloo"))
    trainer = scenario.trainer(
        max_epochs=1 if case == "epoch" else 3,
        callbacks=callbacks,
        num_sanity_val_steps=300 if case == "sanity" else 0,
        **{"devices": 1, **options},
    )
    model = Model()
    try:
        if case == "testing":
            trainer.test(model, loader(500), verbose=False)
        elif case in ("validation", "uneven", "sanity"):
            trainer.fit(model, loader(length), DataLoader(OfRank()) if case == "uneven" else loader(500))
        else:
            trainer.fit(model, loader(length))
            if case != "late":
                trainer.test(model, loader(500), verbose=False)
    finally:
        written = OUT / f"seen-{rank}.part"  # writes the file atomically, since this rank may be killed here
        written.write_text(json.dumps(seen))
        written.replace(written.with_suffix(".json"))


def main():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(WORLD):
        variables = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank)}
        if WORLD > 1:
            variables.update(
                LOCAL_RANK=str(rank),
                WORLD_SIZE=str(WORLD),
                LOCAL_WORLD_SIZE=str(WORLD),
                GROUP_RANK="0",
                TORCHELASTIC_RUN_ID="scenario",
            )
        ranks.append(subprocess.Popen([sys.executable, __file__], env=variables))
    deadline = time.monotonic() + LIMIT
    signalled = False
    while time.monotonic() < deadline and any(process.poll() is None for process in ranks):
        if not signalled and any(OUT.glob("signal-*")):
            signalled = True
            deadline = min(deadline, time.monotonic() + PATIENCE)
        time.sleep(0.1)
    statuses = ["hangs" if process.poll() is None else process.returncode for process in ranks]
    for process in ranks:
        process.kill()
        process.wait()
    if scenario.CASE != "late" and not any(OUT.glob("signal-*")):
        sys.exit(f"no rank came as far as the signal; they ended with {statuses}")
    seen = [json.loads(path.read_text()) for path in sorted(OUT.glob("seen-*.json"))]
    places = [(rank["batches"], rank["evaluated"]) for rank in seen]
    scenario.observe(
        statuses=statuses,
        places=places,
        together=len(places) == WORLD and len(set(places)) == 1,
        received=[rank["received"] for rank in seen],
        checkpoint=sorted(path.name for path in OUT.glob("*.ckpt")),
    )


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        main()
