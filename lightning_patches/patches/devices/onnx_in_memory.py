"""to_onnx can write to a buffer."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _to_onnx(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def to_onnx(self: Any, file_path: Any, input_sample: Any = None, **kwargs: Any) -> None:
        if not hasattr(file_path, "write"):
            original(self, file_path, input_sample, **kwargs)
            return
        import torch

        sample = self.example_input_array if input_sample is None else input_sample
        is_available = vars(upstream_module(namespace, "pytorch.core.module"))["_ONNX_AVAILABLE"]
        if sample is None or not is_available:
            original(self, file_path, input_sample, **kwargs)  # its error names what is missing
            return
        mode = self.training
        with torch.no_grad():
            sample = self._apply_batch_transfer_handler(self._on_before_batch_transfer(sample))
            torch.onnx.export(self, sample, file_path, **kwargs)
        self.train(mode)

    return to_onnx


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("files", "the model is written to the buffer instead of a file with the buffer's name"),
    affected=(">=2.3.0,<2.5.0",),
    targets=(Target("pytorch.core.module:LightningModule.to_onnx", _to_onnx),),
    upstream=Upstream(
        pull_requests=(20172,),
        commit="828fd99896",
        fixed_in="2.5.0",
        tests=("tests/tests_pytorch/models/test_onnx.py::test_model_saves_with_input_sample",),
    ),
    impact=Impact(
        "to_onnx(io.BytesIO()) leaves the buffer empty and writes a file named <_io.BytesIO object at 0x...>, without "
        "a warning.",
        ("to_onnx leaves the BytesIO empty", "a file called <_io.BytesIO object at 0x...>"),
    ),
    note="No program can rely on that file, since its name differs each time.",
)
