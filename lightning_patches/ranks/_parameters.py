"""Parameters of modules and optimizers, without the wrappers of Fabric, DDP and torch.compile."""

from __future__ import annotations

import gc
import sys
from typing import Any

_INNER = {"_FabricModule": "_original_module", "DistributedDataParallel": "module", "OptimizedModule": "_orig_mod"}
_SHARDED_MODULES = ("FullyShardedDataParallel", "XlaFullyShardedDataParallel", "DeepSpeedEngine")


def world_size() -> int:
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())


def named_parameters(module: Any) -> list[tuple[str, Any]]:
    return [(name.replace("_orig_mod.", ""), parameter) for name, parameter in unwrapped(module).named_parameters()]


def unwrapped(module: Any) -> Any:
    """Return the user's module without the wrappers of Fabric, DDP and torch.compile."""
    while type(module).__name__ in _INNER:
        inner = module._modules.get(_INNER[type(module).__name__])
        if inner is None:
            break
        module = inner
    return module


def parameters_of(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def buffers(module: Any) -> list[tuple[str, Any]]:
    return [(name.replace("_orig_mod.", ""), buffer) for name, buffer in unwrapped(module).named_buffers()]


def state_of(optimizer: Any, parameter: Any) -> list[tuple[str, Any]]:
    """Return the tensors of an optimizer's state for a parameter, by name."""
    state = optimizer.state.get(parameter, {})
    return [(str(key), value) for key, value in sorted(state.items(), key=str) if hasattr(value, "element_size")]


def is_sharded(parameter: Any) -> bool:
    """True if this rank has only a part of the parameter (torch's DTensor, or DeepSpeed)."""
    kinds = ("placements", "ds_id")
    return any(hasattr(parameter, name) for name in kinds) or type(parameter).__name__ == "FlatParameter"


def holds_shards(wrapped: list[Any]) -> bool:
    return any(type(part).__name__ in _SHARDED_MODULES for module in wrapped for part in module.modules())


def forward_of(module: Any) -> Any:
    """Return the strategy's module inside Fabric's wrapper."""
    return getattr(module, "_forward_module", module)


def group_of(wrapped: Any) -> Any:
    """Return DDP's process group; ``None`` is the default group."""
    return getattr(wrapped, "process_group", None)


def device_of(named: list[tuple[str, Any]], group: Any) -> Any:
    """Return the device for the collective: the device of the parameters, which the process group supports."""
    import torch

    devices = [parameter.device for _, parameter in named if parameter.device.type != "meta"]
    if not devices and torch.distributed.get_backend(group) == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return next((device for device in devices if device.type != "cpu"), torch.device("cpu"))


def roots() -> list[Any]:
    """Return the modules of this process that no other module contains."""
    import torch

    # isinstance() reads __class__, which would load lazy objects of other packages.
    modules = [found for found in gc.get_objects() if issubclass(type(found), torch.nn.Module)]
    inner = {id(child) for module in modules for child in vars(module).get("_modules", {}).values()}
    return [module for module in modules if id(module) not in inner and "_parameters" in vars(module)]
