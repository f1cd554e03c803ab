"""load_from_checkpoint(map_location=...) moves the model to that device."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_SAVING = "pytorch.core.saving"


def _load_state_on_device(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def load_state(cls: type, checkpoint: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        loaded = original(cls, checkpoint, *args, **kwargs)
        # Without map_location everything is loaded to the CPU.
        device = next((value.device for value in checkpoint.get("state_dict", {}).values() if _is_tensor(value)), None)
        if device is not None and device.type != "cpu" and hasattr(loaded, "to"):
            loaded.to(device)
        return loaded

    return load_state


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "the last digits, because the model computes on the requested device"),
    affected=(">=1.8.0,<2.0.2",),
    targets=(Target(f"{_SAVING}:_load_state", _load_state_on_device),),
    witnesses=(f"{_SAVING}:_load_from_checkpoint",),
    upstream=Upstream(
        pull_requests=(17308,),
        commit="015bc6efe7",
        fixed_in="2.0.2",
        tests=("tests/tests_pytorch/core/test_saving.py::test_load_from_checkpoint_map_location_cpu_to_gpu",),
    ),
    impact=Impact(
        "load_from_checkpoint(map_location='cuda') returns a model on the CPU: it is slow, or fails at the first "
        "batch on the GPU.",
        ("load_from_checkpoint ignores map_location", "Expected all tensors to be on the same device"),
    ),
    note="Without a map_location the model stays on the CPU, as in 2.0.0 and 2.0.1. The official fix then "
    "moves it to the device from which it was saved, which a script for these releases does not expect.",
)
