"""A GPU checkpoint can be loaded on a machine without a GPU."""

import inspect
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _load_from_checkpoint(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _load_from_checkpoint(
        cls: type, checkpoint_path: Any, map_location: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        import torch

        # A wrapper of torch.load expects the arguments that Lightning passes.
        is_wrapped = not inspect.isfunction(torch.load) or torch.load.__globals__ is not vars(torch.serialization)
        if map_location is None and not is_wrapped:
            map_location = _on_cpu_without_device
        return original(cls, checkpoint_path, map_location, *args, **kwargs)

    return _load_from_checkpoint


def _on_cpu_without_device(storage: Any, location: str) -> Any:
    """Map a storage to the CPU if its device does not exist; ``None`` keeps the default (torch's ``map_location``)."""
    import torch

    kind = location.partition(":")[0]
    if kind == "cuda" and not torch.cuda.is_available() or kind == "mps" and not torch.backends.mps.is_available():
        return storage
    return None


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.0.2,<2.1.0",),
    targets=(Target("pytorch.core.saving:_load_from_checkpoint", _load_from_checkpoint),),
    upstream=Upstream(pull_requests=(18079,), commit="1d1531465e", fixed_in="2.1.0"),
    impact=Impact(
        "On a machine without a GPU, load_from_checkpoint without map_location fails for a checkpoint that was "
        "saved on a GPU. Releases below 2.0.2 loaded it to the CPU.",
        ("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False",),
        error="RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
        frames=("/pytorch/core/saving.py",),
    ),
)
