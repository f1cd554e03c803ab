"""Lightning's TF32 advice does not fail in a program that uses torch's newer TF32 setting."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _check(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _check_cuda_matmul_precision(device: Any) -> None:
        try:
            original(device)
        except Exception:
            pass  # the result only decides if Lightning prints a hint

    return _check_cuda_matmul_precision


def _flops(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def get_available_flops(device: Any, dtype: Any) -> Any:
        import torch

        try:
            return original(device, dtype)
        except RuntimeError:
            if dtype is not torch.float32 or getattr(torch.backends.cuda.matmul, "fp32_precision", "") != "tf32":
                raise
        return original(device, "tfloat32")

    return get_available_flops


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.9.0,<=2.6.6",),
    only_with=("torch>=2.9",),
    targets=(
        Target("fabric.accelerators.cuda:_check_cuda_matmul_precision", _check),
        Target("fabric.utilities.throughput:get_available_flops", _flops, since="2.2.0"),
    ),
    upstream=Upstream(issues=(21256,)),
    impact=Impact(
        "With torch 2.9 and later, on an Ampere GPU or newer, Trainer, Fabric and ThroughputMonitor fail if "
        "the program enabled TF32 with torch's newer setting, torch.backends.cuda.matmul.fp32_precision. With "
        "any torch, they also fail if the driver does not report the GPU's generation.",
        (
            "PyTorch is checking the matmul precision without a specific backend name",
            "mix of the legacy and new APIs to set the matmul precision",
            "_check_cuda_matmul_precision and _is_ampere_or_later are replaced by hand",
        ),
        error="RuntimeError: PyTorch is checking the matmul precision without a specific backend name",
    ),
    note="Lightning uses the setting only for a printed hint and a figure of ThroughputMonitor. The hint is "
    "still printed if the program sets nothing. An unusable device still causes an error in the next "
    "line. Without the patch, use torch's older setting, torch.set_float32_matmul_precision.",
)
