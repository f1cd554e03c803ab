"""PR 20172: to_onnx into a buffer leaves it empty, and writes a file that has the buffer's name.

Cases: ``buffer``; ``path``; ``beside``, a buffer, and torch puts the weights into a file beside a model that has a
path. torch's export, which needs another package, is a stand-in.
"""

import io
import os
import tempfile
from pathlib import Path

import _scenario as scenario
import torch

scenario.pytorch("core.module")._ONNX_AVAILABLE = True


def export(model, sample, file, **options):
    if isinstance(file, str):
        Path(file).write_bytes(b"model")
        if scenario.CASE == "beside":
            Path(f"{file}.data").write_bytes(b"weights")
    else:
        file.write(b"model")


if __name__ == "__main__":
    torch.onnx.export = export
    model = scenario.pytorch("demos.boring_classes").BoringModel()
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with scenario.observing_errors():
            model.to_onnx(Path("model.onnx") if scenario.CASE == "path" else buffer, torch.zeros(1, 32))
        scenario.observe(buffer=buffer.getvalue().decode(), files=len(os.listdir()), training=model.training)
        os.chdir("/")
