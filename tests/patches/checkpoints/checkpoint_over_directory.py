"""A checkpoint is saved to a path that is a directory. Cases: ``fabric``, ``trainer``, ``url``, ``open``
(without Lightning), ``file`` (overwritten), ``new``."""

from _expect import bug, same

EXPECT = [
    bug(["fabric", "trainer", "url"], stock=lambda seen: seen["error"] == "" and seen["files"] > 0, like="open"),
    same(["file", "new"], "other paths are saved", {"error": "", "files": 1}),
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
    try:
        if scenario.CASE == "open":
            path.write_bytes(b"")
        elif scenario.CASE == "trainer":
            trainer.save_checkpoint(saved)
        else:
            fabric.save(saved, {"model": fabric.setup_module(torch.nn.Linear(1, 1))})
        error = ""
    except OSError as raised:
        error = type(raised).__name__
    scenario.observe(error=error, files=len(os.listdir(path)) if path.is_dir() else int(path.exists()))
