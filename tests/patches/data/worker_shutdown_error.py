"""Persistent DataLoader workers that die while they are stopped, at the end of a successful training. It simulates a
crash of a library or of torch's threads at the exit of the process. Cases: "" (a Trainer), ``plain`` (the same training
in a loop without Lightning, which succeeds), ``healthy`` (a Trainer, and no worker dies)."""

from _expect import bug, patched, same, whole_run


def crashes(result):
    return not result.ok and "_shutdown_workers" in result.output and "DataLoader worker" in result.output


EXPECT = [
    bug(stock=whole_run(crashes), like="plain", compare=("weights", "left", "torn_down")),
    same("healthy", "workers without errors end as on stock", alone=True),
    patched(
        "",
        "successful training ends with a warning",
        lambda seen: (
            len(seen["warnings"]) == 1
            and "failed while it was being stopped, after its last batch" in seen["warnings"][0]
            and seen["torn_down"]
            and seen["left"] == 0
        ),
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
]

import multiprocessing
import multiprocessing.util
import os
import time

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset


def die_at_exit(worker_id):
    """The second worker dies while the Trainer still waits for the first one, so that the error is certain."""
    last, argument = (os._exit, 3) if worker_id else (time.sleep, 60)
    multiprocessing.util.Finalize(None, last, args=(argument,), exitpriority=0)


class LastHook(scenario.pl.Callback):
    def teardown(self, trainer, pl_module, stage):
        scenario.observe(torn_down=True)


def plain_loop(model, loader):
    optimizer = model.configure_optimizers()
    for _ in range(2):
        for batch_idx, batch in enumerate(loader):
            optimizer.zero_grad()
            model.training_step(batch, batch_idx).backward()
            optimizer.step()
    scenario.observe(torn_down=True)


if __name__ == "__main__":
    torch.manual_seed(1)
    model = Linear()
    loader = DataLoader(
        TensorDataset(torch.arange(16.0).reshape(8, 2)),
        num_workers=2,
        persistent_workers=True,
        worker_init_fn=None if scenario.CASE == "healthy" else die_at_exit,
    )
    if scenario.CASE == "plain":
        plain_loop(model, loader)
        del loader
    else:
        with scenario.observing_warnings():
            scenario.trainer(devices=1, max_epochs=2, callbacks=[LastHook()]).fit(model, loader)
    workers = multiprocessing.active_children()
    for worker in workers:  # torch has terminated them, but does not wait for all of them
        worker.join(20)
    scenario.observe(weights=list(model.parameters()), left=len(multiprocessing.active_children()))
