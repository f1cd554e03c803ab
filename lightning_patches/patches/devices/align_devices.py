"""accelerate's device hooks follow a module that a strategy moves to the rank's device.

A model that accelerate dispatched (``device_map`` in transformers, bitsandbytes and PEFT) has an ``AlignDevicesHook``
on its submodules. The hook moves the inputs of each forward to the device on which the weights were loaded. Lightning
then moves the weights to the rank's device, but does not update the hooks.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterator

from lightning_patches.patch import Impact, Patch, Target, Upstream

_ACCELERATE = "accelerate.hooks"


def _place_model(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def place(self: Any) -> None:
        model = self.model if _ACCELERATE in sys.modules else None  # a strategy may replace self.model
        original(self)
        _follow(model, self)

    return place


def _module_to_device(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def module_to_device(self: Any, module: Any) -> None:
        original(self, module)
        _follow(module, self)

    return module_to_device


def _fsdp_setup_model(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _setup_model(self: Any, model: Any) -> Any:
        _lead(model, self)
        return original(self, model)

    return _setup_model


def _fsdp_setup_module(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def setup_module(self: Any, module: Any) -> Any:
        _lead(module, self)
        return original(self, module)

    return setup_module


def _follow(model: Any, strategy: Any) -> None:
    """Set the hooks' device to the rank's device where they would move inputs to another device than the weights.

    If the program keeps the weights where they are, its hooks are correct and are not changed.
    """
    whole = None
    for module, hook, root in _hooks_elsewhere(model, strategy):
        devices = _devices(module)
        if not devices:  # for a module without weights, the devices of the whole model count
            devices = whole = whole or _devices(model)
        there = _device(hook.execution_device, root)
        if any(_same(device, root) for device in devices) and not any(_same(device, there) for device in devices):
            hook.execution_device = root


def _lead(model: Any, strategy: Any) -> None:
    """Move hooks and weights to the rank's device before FSDP shards the weights on their current device."""
    import torch

    for module, hook, root in _hooks_elsewhere(model, strategy):
        if any(device.type == root.type and not _same(device, root) for device in _devices(module)):
            torch.nn.Module.to(module, root)  # bypasses accelerate's `to`, which only warns
        hook.execution_device = root


def _hooks_elsewhere(model: Any, strategy: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield each hook whose device is not the rank's, as (module, hook, device of the rank).

    Skips hooks that load weights from the CPU or from disk.
    """
    accelerate = sys.modules.get(_ACCELERATE)
    if accelerate is None or model is None:
        return
    root = strategy.root_device
    for module in model.modules():
        hooks = [vars(module).get("_hf_hook")]  # not getattr(): PEFT's wrappers forward it to the wrapped model
        while hooks:
            hook = hooks.pop()
            if isinstance(hook, accelerate.SequentialHook):
                hooks += hook.hooks
            elif isinstance(hook, accelerate.AlignDevicesHook) and not hook.offload:
                device = _device(hook.execution_device, root)
                if device is not None and device.type != "meta" and not _same(device, root):
                    yield module, hook, root


def _devices(module: Any) -> set[Any]:
    return {t.device for tensors in (module.parameters(), module.buffers()) for t in tensors}


def _device(value: Any, root: Any) -> Any:
    """Convert accelerate's device to torch's; ``None`` for "disk" and unknown devices."""
    import torch

    if isinstance(value, int):
        return torch.device("cuda" if root.type == "cpu" else root.type, value)
    try:
        return None if value is None else torch.device(value)
    except (RuntimeError, TypeError):
        return None


def _same(device: Any, other: Any) -> bool:
    """True if the devices are equal. A device without an index counts as the rank's device."""
    return bool(device.type == other.type and (None in (device.index, other.index) or device.index == other.index))


PATCH = Patch(
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.strategies.ddp:DDPStrategy.model_to_device", _place_model),
        Target("pytorch.strategies.single_device:SingleDeviceStrategy.model_to_device", _place_model),
        Target("pytorch.strategies.fsdp:FSDPStrategy._setup_model", _fsdp_setup_model),
        Target("pytorch.strategies.deepspeed:DeepSpeedStrategy.init_deepspeed", _place_model),
        Target("fabric.strategies.ddp:DDPStrategy.module_to_device", _module_to_device),
        Target("fabric.strategies.single_device:SingleDeviceStrategy.module_to_device", _module_to_device),
        Target("fabric.strategies.fsdp:FSDPStrategy.setup_module", _fsdp_setup_module),
    ),
    upstream=Upstream(issues=(20276,)),
    impact=Impact(
        "A model loaded with accelerate's device_map, in 8 or 4 bits or with PEFT, trains on one GPU and fails "
        "on the others: hooks still move its inputs to the GPU where it was loaded.",
        (
            "Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0",
            "Expected all tensors to be on the same device",
            "Inconsistent compute device and `device_id` on rank 1: cuda:0 vs cuda:1",
        ),
        error="RuntimeError: Expected all tensors to be on the same device, but found at least two devices, "
        "cuda:1 and cuda:0!",
        frames=("accelerate/hooks.py", "bitsandbytes/"),
        would_tell="if the traceback has a frame of accelerate's hooks or of bitsandbytes. Without one, the script has "
        "not moved a tensor to the model's device",
    ),
    note="A model that accelerate distributed over several devices is moved to the device of the rank, as "
    "without the patch, and now runs. A model that accelerate offloaded cannot be moved and raises the "
    "same error as without the patch. A model with accelerate's hooks cannot be pickled for ddp_spawn; "
    "create it in configure_model. Without the patch, call "
    "accelerate.hooks.remove_hook_from_module(model, recurse=True) before you pass the model to the "
    "Trainer or Fabric, or load it with device_map={'': local_rank}. Training on the device where "
    "accelerate put the model is unchanged, and so are distributed or offloaded models that are not moved.",
    around=("fsdp-metrics-device",),
)
