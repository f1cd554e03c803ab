"""``pytorch/core/saving.py``: ``load_from_checkpoint``."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Iterator

from lightning_patches import trust
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_SAVING = "pytorch.core.saving"


def _load_state(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def load_state(cls: type, checkpoint: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        new = {name: value for name, value in kwargs.items() if name != "strict"}
        _check(cls, {**_loaded_arguments(cls, checkpoint, upstream_module(namespace, _SAVING)), **new})
        return original(cls, checkpoint, *args, **kwargs)

    return load_state


def _loaded_arguments(cls: Any, checkpoint: dict[str, Any], saving: Any) -> dict[str, Any]:
    """What the original is about to take from the checkpoint as arguments of ``cls``, made in the same way."""
    key = cls.CHECKPOINT_HYPER_PARAMS_KEY
    if key not in checkpoint:
        return {}
    loaded: dict[str, Any] = {}
    if issubclass(cls, saving.pl.LightningModule):
        for past_key in saving.CHECKPOINT_PAST_HPARAMS_KEYS:
            loaded.update(checkpoint.get(past_key, {}))
    loaded.update(checkpoint.get(key, {}))
    converted = saving._convert_loaded_hparams(loaded, checkpoint.get(cls.CHECKPOINT_HYPER_PARAMS_TYPE))
    name = checkpoint.get(cls.CHECKPOINT_HYPER_PARAMS_NAME)
    special = {part for part in saving.parse_class_init_keys(cls) if part}
    if name and name in inspect.signature(cls.__init__).parameters and name not in special:
        return {name: converted}
    arguments: dict[str, Any] = {}
    arguments.update(converted)
    return arguments


def _check(cls: type, arguments: dict[str, Any]) -> None:
    """Refuse names that were not trusted beforehand. Imports nothing and calls nothing.

    Raises:
        ValueError: the checkpoint names a function or a class that it may not name.
    """
    instantiator = arguments.get("_instantiator")
    if instantiator is None:
        return
    if not trust.is_trusted_instantiator(instantiator):
        raise ValueError(
            f"The checkpoint asks for {cls.__name__} to be made by {instantiator!r}, which is not a function that"
            " checkpoints may name; nothing was imported or called. If you know this file and this function, call"
            f" lightning_patches.trust_instantiator({instantiator!r}) before you load it."
        )
    class_path = arguments.get("_class_path")
    if class_path is not None and not is_imported_subclass(class_path, cls):
        raise ValueError(
            f"The checkpoint asks for the class {class_path!r} in place of {cls.__name__}, and that is not a subclass"
            " of it that has been imported; nothing was imported or called. If you know this file and this class,"
            " import the class before you load the file."
        )


def is_imported_subclass(path: Any, cls: type) -> bool:
    """Whether a dotted path leads to a subclass of ``cls`` within a module that is imported already."""
    if not isinstance(path, str):
        return False
    module, _, name = path.rpartition(".")
    while module and module not in sys.modules:  # a class within a class
        module, _, outer = module.rpartition(".")
        name = f"{outer}.{name}"
    if not module:
        return False
    found: Any = sys.modules[module]
    for part in name.split("."):
        # Not getattr(): a module's __getattr__ may import.
        found = getattr(found, "__dict__", {}).get(part)
    if found is None:  # what such a __getattr__ gives has its home further down in the package
        below = f"{module}."
        found = next((c for c in _subclasses(cls) if c.__qualname__ == name and c.__module__.startswith(below)), None)
    return isinstance(found, type) and issubclass(found, cls)


def _subclasses(cls: type) -> Iterator[type]:
    direct: list[type] = type.__subclasses__(cls)
    for subclass in direct:
        yield subclass
        yield from _subclasses(subclass)


def _load_state_on_device(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def load_state(cls: type, checkpoint: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        loaded = original(cls, checkpoint, *args, **kwargs)
        # Without a map_location everything is loaded to the CPU.
        device = next((value.device for value in checkpoint.get("state_dict", {}).values() if _is_tensor(value)), None)
        if device is not None and device.type != "cpu" and hasattr(loaded, "to"):
            loaded.to(device)
        return loaded

    return load_state


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _load_state_of_any_kind(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def load_state(cls: type, checkpoint: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        import torch

        loaded = original(cls, checkpoint, *args, **kwargs)
        first = next(iter(checkpoint.get("state_dict", {}).values()), None)
        if first is not None and not isinstance(first, torch.Tensor):
            # The caller is about to ask the first entry for its device, and nothing else of the checkpoint.
            tensors = (entry for entry in checkpoint["state_dict"].values() if isinstance(entry, torch.Tensor))
            checkpoint["state_dict"] = {"": next(tensors, torch.tensor(0))}
        return loaded

    return load_state


PATCHES = (
    Patch(
        name="load-from-checkpoint-device",
        title="load_from_checkpoint(map_location=...) puts the model on that device",
        group="correctness",
        affected=(">=2.0.0,<2.0.2",),
        targets=(Target(f"{_SAVING}:_load_state", _load_state_on_device),),
        witnesses=(f"{_SAVING}:_load_from_checkpoint",),
        calls=("fabric.utilities.device_dtype_mixin:_DeviceDtypeModuleMixin.to()",),
        upstream=Upstream(
            pull_requests=(17308,),
            commit="015bc6efe7",
            fixed_in="2.0.2",
            tests=("tests/tests_pytorch/core/test_saving.py::test_load_from_checkpoint_map_location_cpu_to_gpu",),
        ),
        impact=Impact(
            "load_from_checkpoint(map_location='cuda') gives a model on the CPU: it computes there, slowly, or ends in "
            "an error at the first batch on the GPU.",
            ("load_from_checkpoint ignores map_location", "Expected all tensors to be on the same device"),
        ),
        note="Without a map_location the model stays on the CPU, as in 2.0.0 and 2.0.1. The official fix then puts it "
        "on the device where it was saved, which a script for these releases does not expect.",
    ),
    Patch(
        name="checkpoint-instantiator",
        title="A checkpoint cannot name code that load_from_checkpoint then runs",
        group="security",
        affected=(">=2.3.0,<2.6.6",),
        targets=(Target(f"{_SAVING}:_load_state", _load_state),),
        calls=(
            "pytorch.core.saving:_convert_loaded_hparams()",
            "pytorch.utilities.parsing:parse_class_init_keys()",
        ),
        upstream=Upstream(
            issues=(21822, 21913),
            pull_requests=(21832, 21914),
            commit="d710d68951",
            fixed_in="2.6.6",
            tests=(
                "tests/tests_pytorch/core/test_saving.py::test_load_from_checkpoint_blocks_untrusted_instantiator",
                "tests/tests_pytorch/core/test_saving.py::test_load_from_checkpoint_allows_lightning_instantiator",
            ),
        ),
        impact=Impact(
            "Loading a checkpoint from somebody else with load_from_checkpoint can run code that the file names, even "
            "with weights_only=True.",
            ("CVE-2026-58659", "GHSA-qqmf-gpg7-g8gw", "PYSEC-2026-3624", "PYSEC-2026-3967"),
        ),
        note="A checkpoint made by a function of your own is refused until the script says "
        "lightning_patches.trust_instantiator(...) with its dotted path. A class that a LightningCLI checkpoint names "
        "must be imported before loading, as from 2.6.6 on. Pickled objects are another matter: load files that "
        "you do not trust with weights_only=True.",
    ),
    Patch(
        name="checkpoint-extra-state",
        title="load_from_checkpoint accepts a state dict that does not begin with a tensor",
        group="crash",
        affected=(">=2.0.2,<2.0.4",),
        targets=(Target(f"{_SAVING}:_load_state", _load_state_of_any_kind),),
        witnesses=(f"{_SAVING}:_load_from_checkpoint",),
        upstream=Upstream(
            pull_requests=(17812,),
            commit="0f4ac5b766",
            fixed_in="2.0.4",
            tests=(
                "tests/tests_pytorch/core/test_saving.py::test_load_from_checkpoint_device_placement_with_extra_state",
            ),
        ),
        impact=Impact(
            "load_from_checkpoint fails for a LightningModule that has get_extra_state() and no parameters of its own "
            "besides its layers.",
            ("AttributeError: 'dict' object has no attribute 'device'",),
        ),
    ),
)
