"""The start line appears once per job, even if the job starts other processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.variants import Variant, environment_of

PROGRAM = """
import sys
import lightning_patches
import lightning.pytorch as L
import torch

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        import lightning.pytorch
        return torch.ones(1) * index

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

if __name__ == "__main__":
    context = sys.argv[1]
    if context == "forkserver":
        import multiprocessing
        multiprocessing.set_forkserver_preload(sys.argv[2:])
    loader = torch.utils.data.DataLoader(Numbers(), num_workers=2, multiprocessing_context=context)
    trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False,
                        enable_checkpointing=False, enable_model_summary=False)
    trainer.fit(Model(), loader)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "context", [["spawn"], ["forkserver"], ["forkserver", "__main__"], ["forkserver", "lightning.pytorch", "torch"]]
)
def test_workers_do_not_repeat_the_start_line(context: list[str], tmp_path: Path) -> None:
    """In each of three epochs, two new workers import the program, and with it Lightning."""
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, str(path), *context],
        env={**environment_of(Variant("lightning", "2.6.6")), "LIGHTNING_PATCHES": "1"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("lightning_patches: ") == ended.stderr.count("lightning 2.6.6: ") == 1, ended.stderr


@pytest.mark.parametrize("library", ["multiprocessing", "multiprocess"])
def test_starting_worker_counts_as_a_child(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from lightning_patches import notices

    process = SimpleNamespace(parent_process=lambda: None, current_process=lambda: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "multiprocessing.process", process)
    monkeypatch.setitem(sys.modules, f"{library}.process", process)
    assert not notices.is_child()
    process.current_process = lambda: SimpleNamespace(_inheriting=True)
    assert notices.is_child()
