"""A checkpoint is saved to a path that is a directory. Cases: ``fabric``, ``trainer``, ``url``, ``file`` (overwritten),
``new``."""

from _expect import same, warns

EXPECT = [
    warns(["fabric", "trainer", "url"], "checkpoint in a directory", "is a directory, so", on=("2.4.0", "2.6.6")),
    same(["file", "new"], "other paths are saved", {"files": 1, "warnings": []}),
]

import os
from pathlib import Path

import _scenario as scenario
import torch

if __name__ == "__main__":
    path = Path("last.ckpt").absolute()
    if scenario.CASE == "file":
        path.write_bytes(b"")
    elif scenario.CASE != "new":
        path.mkdir()
    saved = f"file://{path}" if scenario.CASE == "url" else path
    fabric = scenario.fabric().Fabric(accelerator="cpu", devices=1)
    trainer = scenario.trainer(max_epochs=0)
    trainer.fit(scenario.BoringModel())
    with scenario.observing_warnings():
        if scenario.CASE == "trainer":
            trainer.save_checkpoint(saved)
        else:
            fabric.save(saved, {"model": fabric.setup_module(torch.nn.Linear(1, 1))})
    scenario.observe(files=len(os.listdir(path)) if path.is_dir() else int(path.exists()))
