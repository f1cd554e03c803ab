"""to_onnx leaves a buffer empty, and writes a file named after it. Cases: ``buffer``; ``example``, a buffer, and the
model has an example input; ``nothing``, it has none; ``path``. A stand-in replaces torch's export, which needs another
package."""

from _expect import bug, same


def _with(text, files):
    return {"buffer": text, "files": files, "training": True, "moved": 1}


EXPECT = [
    *[
        bug(case, stock=_with("", 1), patched=_with(f"[{size}, 32] False {{'verbose': False}}", 0))
        for case, size in (("buffer", 1), ("example", 2))
    ],
    same("path", "path is written as on stock", alone=True),
    same("nothing", "missing input is refused as on stock", "Could not export to ONNX since neither", alone=True),
]

import io
import os
import tempfile
from pathlib import Path

import _scenario as scenario
import torch

scenario.pytorch("core.module")._ONNX_AVAILABLE = True


class Model(scenario.BoringModel):
    moved = 0

    def on_after_batch_transfer(self, batch, dataloader_idx):
        self.moved += 1
        return batch


def export(model, sample, file, **options):
    text = f"{list(sample.shape)} {torch.is_grad_enabled()} {options}".encode()
    if isinstance(file, str):
        Path(file).write_bytes(text)
    else:
        file.write(text)
    model.eval()


if __name__ == "__main__":
    torch.onnx.export = export
    model = Model()
    if scenario.CASE == "example":
        model.example_input_array = torch.zeros(2, 32)
    sample = None if scenario.CASE in ("example", "nothing") else torch.zeros(1, 32)
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with scenario.observing_errors():
            model.to_onnx(Path("model.onnx") if scenario.CASE == "path" else buffer, sample, verbose=False)
        scenario.observe(
            buffer=buffer.getvalue().decode(), files=len(os.listdir()), training=model.training, moved=model.moved
        )
        os.chdir("/")
