"""A DataLoader whose arguments were given by position can be used by predict, and under DDP."""

import inspect
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target


def _reinstantiate(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _reinstantiate_wrapped_cls(orig_object: Any, *args: Any, explicit_cls: Any = None, **kwargs: Any) -> Any:
        from torch.utils.data import DataLoader

        if args and explicit_cls is None and isinstance(orig_object, DataLoader):
            args, kwargs = _once(orig_object, args, kwargs)
        return original(orig_object, *args, explicit_cls=explicit_cls, **kwargs)

    return _reinstantiate_wrapped_cls


def _once(loader: Any, args: Any, kwargs: Any) -> Any:
    """Leave out the positional arguments that are given by name, too. The values by name are Lightning's."""
    names = getattr(loader, "__pl_saved_arg_names", ())
    first = next((index for index, name in enumerate(names[: len(args)]) if name in kwargs), None)
    signature = inspect.signature(type(loader).__init__)
    if first is None or any(
        one.kind in (one.VAR_POSITIONAL, one.POSITIONAL_ONLY) for one in signature.parameters.values()
    ):
        return args, kwargs
    return args[:first], {**dict(zip(names[first:], args[first:])), **kwargs}


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("fabric.utilities.data:_reinstantiate_wrapped_cls", _reinstantiate),),
    impact=Impact(
        "predict fails if predict_dataloader returns DataLoader(data, 4): the batch size is given by position, and "
        "Lightning gives it by name, too. Under DDP, DataLoader(data, 4, True) fails in all stages, and in Fabric.",
        (
            "The DataLoader implementation has an error where more than one `__init__` argument can be passed to its "
            "parent's `batch_size=...` `__init__` argument",
            "The DataLoader implementation has an error where more than one `__init__` argument can be passed to its "
            "parent's `shuffle=...` `__init__` argument",
        ),
        error="MisconfigurationException: The DataLoader implementation has an error where more than one `__init__` "
        "argument can be passed to its parent's `batch_size=...` `__init__` argument. ...",
        would_tell="how the loader is created. It is this bug if it is DataLoader(data, 4), or a subclass that passes "
        "its positional arguments on",
    ),
)
