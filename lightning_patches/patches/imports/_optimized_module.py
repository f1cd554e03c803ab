"""A stand-in for the class ``torch._dynamo.OptimizedModule`` that does not import ``torch._dynamo``."""

from __future__ import annotations

import sys
from typing import Any


class _Meta(type):
    """Forwards instance checks, subclass checks and attributes to torch's class.

    Before ``torch._dynamo`` is imported, that class has no instances.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], contents: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, contents)
        real = tuple(_torchs_class() if isinstance(base, _Meta) else base for base in bases)
        return type(real[0])(name, real, contents)  # a subclass of torch's class

    def __init__(cls, *_: Any) -> None:
        pass

    def __instancecheck__(cls, instance: Any) -> bool:
        real = _imported_class()
        return real is not None and isinstance(instance, real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        real = _imported_class()
        return subclass is cls or (real is not None and issubclass(subclass, real))

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _torchs_class()(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):  # typing reads special attributes that torch's class does not have either
            raise AttributeError(name)
        return getattr(_torchs_class(), name)


class OptimizedModule(metaclass=_Meta):
    """The class of modules that ``torch.compile`` returns."""


def _imported_class() -> Any:
    return getattr(sys.modules.get("torch._dynamo"), "OptimizedModule", None)


def _torchs_class() -> Any:
    import torch._dynamo

    return torch._dynamo.OptimizedModule
