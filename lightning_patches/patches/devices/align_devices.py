"""accelerate's device hooks on a module that a strategy of the Trainer or of Fabric places.

A model that accelerate dispatched (``device_map`` in transformers, also below bitsandbytes and PEFT) has an
``AlignDevicesHook`` on its submodules, which moves the inputs of each forward to the device where the weights were
loaded. Lightning then moves the weights to the rank's device, and the hooks do not learn of it.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterator, Optional

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream

_ACCELERATE = "accelerate.hooks"

_SHOWN = 4


def _model_to_device(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def model_to_device(self: Any) -> None:
        if _ACCELERATE in sys.modules:
            _follow(self, self.model, lambda: original(self))
        else:
            original(self)

    return model_to_device


def _module_to_device(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def module_to_device(self: Any, module: Any) -> None:
        if _ACCELERATE in sys.modules:
            _follow(self, module, lambda: original(self, module))
        else:
            original(self, module)

    return module_to_device


def _init_deepspeed(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def init_deepspeed(self: Any) -> None:
        if _ACCELERATE in sys.modules:
            _follow(self, self.model, lambda: original(self))
        else:
            original(self)

    return init_deepspeed


def _fsdp_setup_model(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _setup_model(self: Any, model: Any) -> Any:
        if _ACCELERATE in sys.modules:
            _lead(self, model)
        return original(self, model)

    return _setup_model


def _fsdp_setup_module(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def setup_module(self: Any, module: Any) -> Any:
        if _ACCELERATE in sys.modules:
            _lead(self, module)
        return original(self, module)

    return setup_module


class _Dispatched:
    """The outermost module that accelerate had in hand, with all that it left on it and below.

    Args:
        name: the module's name in what the strategy places, "" for that itself.
        module: the module.
    """

    def __init__(self, name: str, module: Any) -> None:
        self.name = name
        self.module = module
        self.hooks: list[tuple[str, Any, Any]] = []
        self.maps: list[Any] = []

    @property
    def offloads(self) -> bool:
        """Whether weights are kept on the CPU or on disk, and brought to the device for each forward."""
        return any(hook.offload for _, _, hook in self.hooks)

    def pinned(self, root: Any) -> Iterator[tuple[Any, Any, Any]]:
        """The hooks that name a device: their module, the hook, the device."""
        for _, module, hook in self.hooks:
            device = None if hook.offload else _device(hook.execution_device, root)
            if device is not None and device.type != "meta":
                yield module, hook, device

    def is_spread(self, root: Any) -> bool:
        devices = [device for _, _, device in self.pinned(root)]
        return any(not _same(device, devices[0]) for device in devices)

    def mistaken(self, root: Any) -> list[Any]:
        """Hooks that move inputs away from the weights: these lie on the strategy's device, not on the hook's.

        Where a program keeps the weights from being moved, its hooks are right and are none of these.
        """
        found, whole = [], None
        for module, hook, device in self.pinned(root):
            if _same(device, root):
                continue
            tensors = _devices(module)
            if not tensors:  # a module without weights goes with the model around it
                tensors = whole = whole or _devices(self.module)
            if any(_same(d, root) for d in tensors) and not any(_same(d, device) for d in tensors):
                found.append(hook)
        return found

    def aim(self, hooks: list[Any], root: Any) -> None:
        """Have the hooks move inputs to ``root``, and ``hf_device_map`` say so."""
        for hook in hooks:
            hook.execution_device = _in_form_of(hook.execution_device, root)
        if root.type == "cpu":
            return  # in a device map, "cpu" means offloaded
        for module in self.maps:
            if all(_same(device, root) for device in _devices(module)):
                module.hf_device_map = {
                    name: value if _is_device(value, root) else _in_form_of(value, root)
                    for name, value in module.hf_device_map.items()
                }


def _follow(strategy: Any, module: Any, place: Callable[[], None]) -> None:
    """Let the strategy move the module, and its hooks go with it.

    Raises:
        RuntimeError: the module cannot be placed, or not in each rank, because it is spread or offloaded.
    """
    models = _dispatched(module)
    root = strategy.root_device
    several = getattr(strategy, "world_size", 1) > 1
    try:
        place()
    except Exception as error:
        for model in models:
            if model.offloads or (several and model.is_spread(root)):
                raise _refusal(model, strategy, several) from error
        raise
    for model in models:
        mistaken = [] if model.offloads else model.mistaken(root)
        if mistaken and model.is_spread(root):
            if several:
                raise _refusal(model, strategy, several)
            notices.warn_once(
                f"align-devices-gathered-{model.name}",
                f"{_places(model, root)}. {type(strategy).__name__} has moved all of it to {root}, and accelerate's"
                f" hooks go along. To load it there, pass {_advice(root)}.",
                all_ranks=True,
            )
        if not model.offloads:
            model.aim(mistaken, root)


def _lead(strategy: Any, module: Any) -> None:
    """Have hooks and weights on the rank's device before FSDP, which shards where it finds the weights.

    Raises:
        RuntimeError: the module is spread or offloaded: FSDP would shard what is not there.
    """
    import torch

    root = strategy.root_device
    for model in _dispatched(module):
        if model.offloads or model.is_spread(root):
            raise _refusal(model, strategy, True)
        elsewhere = [hook for _, hook, device in model.pinned(root) if not _same(device, root)]
        if elsewhere and any(d.type == root.type and not _same(d, root) for d in _devices(model.module)):
            torch.nn.Module.to(model.module, root)  # past accelerate's own `to`, which only warns
        model.aim(elsewhere, root)


def _dispatched(module: Any) -> list[_Dispatched]:
    """What accelerate dispatched, within a module or around it. Each is one model, however deep its hooks go."""
    accelerate = sys.modules[_ACCELERATE]
    found: list[_Dispatched] = []
    seen: set[int] = set()

    def flat(hook: Any) -> Iterator[Any]:
        if isinstance(hook, accelerate.SequentialHook):
            for inner in hook.hooks:
                yield from flat(inner)
        elif isinstance(hook, accelerate.AlignDevicesHook):
            yield hook

    def visit(child: Any, name: str, model: Optional[_Dispatched]) -> None:
        if id(child) in seen:
            return
        seen.add(id(child))
        own = vars(child)  # PEFT's wrappers answer for the model in them: only what is their own counts
        hooks = list(flat(own.get("_hf_hook")))
        device_map = own.get("hf_device_map")
        if model is None and (hooks or isinstance(device_map, dict)):
            model = _Dispatched(name, child)
            found.append(model)
        if model is not None:
            model.hooks += [(name, child, hook) for hook in hooks]
            if isinstance(device_map, dict):
                model.maps.append(child)
        for part, grandchild in child.named_children():
            visit(grandchild, f"{name}.{part}" if name else part, model)

    if module is not None:
        visit(module, "", None)
    return found


def _refusal(model: _Dispatched, strategy: Any, several: bool) -> RuntimeError:
    if model.offloads:
        _spare(getattr(strategy, "lightning_module", None))
    root = strategy.root_device
    keep = "" if several else ", or keep it as it is on one device with Fabric's setup(..., move_to_device=False)"
    return RuntimeError(
        f"[rank {notices.rank()}] {_places(model, root)}. {type(strategy).__name__} needs all of it on {root}, the"
        f" device of this rank. Load it with {_advice(root)}, or without device_map{keep}."
    )


def _spare(module: Any) -> None:
    """Keep the Trainer's teardown from moving what cannot be moved: its error would hide ours."""
    if module is None:
        return

    def cpu() -> Any:
        vars(module).pop("cpu", None)
        return module

    vars(module)["cpu"] = cpu


def _advice(root: Any) -> str:
    if root.index is None:
        return f'device_map={{"": "{root}"}}'
    return f'device_map={{"": local_rank}}, which is {{"": {root.index}}} here'


def _places(model: _Dispatched, root: Any) -> str:
    """Which modules accelerate put where, in words."""
    where: dict[str, list[str]] = {}
    if model.maps:
        for name, value in model.maps[0].hf_device_map.items():
            device = _device(value, root)
            where.setdefault(str(value if device is None else device), []).append(name or "all of it")
    else:
        for name, _, hook in model.hooks:
            device = _device(hook.execution_device, root)
            if hook.offload or device is not None:
                where.setdefault("the CPU or disk" if hook.offload else str(device), []).append(name or "the model")
    parts = []
    for device_name, names in where.items():
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        parts.append(f"{', '.join(names[:_SHOWN])}{more} on {device_name}")
    name = f" ({model.name})" if model.name else ""
    how = "offloaded parts of" if model.offloads else "spread"
    return f"accelerate {how} {type(model.module).__name__}{name}: {'; '.join(parts)}"


def _devices(module: Any) -> set[Any]:
    return {t.device for tensors in (module.parameters(), module.buffers()) for t in tensors}


def _device(value: Any, root: Any) -> Any:
    """What accelerate calls a device, as torch does; ``None`` for "disk" and for what torch does not know."""
    import torch

    if isinstance(value, int):
        return torch.device("cuda" if root.type == "cpu" else root.type, value)
    try:
        return None if value is None else torch.device(value)
    except (RuntimeError, TypeError):
        return None


def _is_device(value: Any, root: Any) -> bool:
    device = _device(value, root)
    return device is not None and _same(device, root)


def _same(device: Any, other: Any) -> bool:
    """A device without an index is the current one, and that is the rank's."""
    return bool(device.type == other.type and (None in (device.index, other.index) or device.index == other.index))


def _in_form_of(value: Any, root: Any) -> Any:
    if isinstance(value, int):
        return root if root.index is None else root.index
    return str(root) if isinstance(value, str) else root


PATCH = Patch(
    name="align-devices",
    title="accelerate's device hooks follow a model to the rank that trains it",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.strategies.ddp:DDPStrategy.model_to_device", _model_to_device),
        Target("pytorch.strategies.single_device:SingleDeviceStrategy.model_to_device", _model_to_device),
        Target("pytorch.strategies.fsdp:FSDPStrategy._setup_model", _fsdp_setup_model),
        Target("pytorch.strategies.deepspeed:DeepSpeedStrategy.init_deepspeed", _init_deepspeed),
        Target("fabric.strategies.ddp:DDPStrategy.module_to_device", _module_to_device),
        Target("fabric.strategies.single_device:SingleDeviceStrategy.module_to_device", _module_to_device),
        Target("fabric.strategies.fsdp:FSDPStrategy.setup_module", _fsdp_setup_module),
    ),
    calls=(
        "fabric.strategies.ddp:DDPStrategy.root_device()",
        "fabric.strategies.parallel:ParallelStrategy.world_size()",
        "pytorch.strategies.ddp:DDPStrategy.root_device()",
        "pytorch.strategies.parallel:ParallelStrategy.world_size()",
        "pytorch.strategies.strategy:Strategy.model()",
    ),
    upstream=Upstream(issues=(20276,)),
    impact=Impact(
        "A model loaded with accelerate's device_map, in 8 or 4 bits or under PEFT, trains on one GPU and dies on "
        "the others: hooks keep moving its inputs to the GPU where it was loaded.",
        (
            "Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0",
            "Expected all tensors to be on the same device",
            "Inconsistent compute device and `device_id` on rank 1: cuda:0 vs cuda:1",
            "Cannot copy out of meta tensor; no data!",
            "You can't move a model that has some modules offloaded to cpu or disk.",
        ),
        error="RuntimeError: Expected all tensors to be on the same device, but found at least two devices, "
        "cuda:1 and cuda:0!",
    ),
    equivalent_to="accelerate.hooks.remove_hook_from_module(model, recurse=True) before the Trainer or Fabric, or "
    "device_map={'': local_rank}",
    note="A model that accelerate spread over several devices or offloaded cannot be trained on several ranks: an "
    "error before the training says which modules are where, and what to pass instead. On one device it is "
    "gathered there, as Lightning always did, and now it runs. A model with accelerate's hooks cannot be pickled "
    "for ddp_spawn; make it in configure_model.",
    relied_on="Training on the device where accelerate put the model, and a spread or offloaded model that is "
    "not moved: both are left alone. What several ranks cannot train ended in an error before, and still does, "
    "only sooner and in other words.",
    relied_on_tests=("tests/patches/test_align_devices.py::test_what_works_is_left_alone",),
    frames=("accelerate/hooks.py", "bitsandbytes/"),
    would_tell="a frame of accelerate's hooks or of bitsandbytes in the traceback. Without one, some tensor was "
    "not moved to the model's device by the script",
)
