"""load_from_checkpoint accepts a state dict whose first entry is not a tensor."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_SAVING = "pytorch.core.saving"


def _load_state_of_any_kind(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def load_state(cls: type, checkpoint: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        import torch

        loaded = original(cls, checkpoint, *args, **kwargs)
        first = next(iter(checkpoint.get("state_dict", {}).values()), None)
        if first is not None and not isinstance(first, torch.Tensor):
            # The caller now reads only the device of the first entry.
            tensors = (entry for entry in checkpoint["state_dict"].values() if isinstance(entry, torch.Tensor))
            checkpoint["state_dict"] = {"": next(tensors, torch.tensor(0))}
        return loaded

    return load_state


PATCH = Patch(
    group="crash",
    affected=(">=2.0.2,<2.0.4",),
    targets=(Target(f"{_SAVING}:_load_state", _load_state_of_any_kind),),
    witnesses=(f"{_SAVING}:_load_from_checkpoint",),
    upstream=Upstream(
        pull_requests=(17812,),
        commit="0f4ac5b766",
        fixed_in="2.0.4",
        tests=("tests/tests_pytorch/core/test_saving.py::test_load_from_checkpoint_device_placement_with_extra_state",),
    ),
    impact=Impact(
        "load_from_checkpoint fails for a LightningModule that defines get_extra_state() and whose parameters "
        "are all in its layers.",
        ("AttributeError: 'dict' object has no attribute 'device'",),
        error="AttributeError: 'dict' object has no attribute 'device'",
    ),
)
