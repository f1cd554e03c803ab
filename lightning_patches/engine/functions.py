"""Unwrap descriptors and copy a function's metadata to its replacement."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import typing
from types import CodeType, FunctionType, MethodType
from typing import Any, Callable, Dict, Iterator

from lightning_patches.engine.hooks import ROOT_PACKAGES

MISSING: Any = object()
NAMES = "__lightning_patches__"
"""Attribute of a replacement: names of the patches in it, innermost first."""
ORIGINAL = "__lightning_patches_original__"
"""Attribute of a replacement: the original function.

``__wrapped__`` is not used, since Lightning's ``is_overridden`` unwraps only one side of its comparison, and would
report every patched base method as overridden.
"""

DESCRIPTORS = (staticmethod, classmethod, property)
_CACHE: Any = type(functools.lru_cache(maxsize=None)(len))


def function_of(raw: Any) -> Any:
    """Return the function in a descriptor or in an ``lru_cache``."""
    if isinstance(raw, (staticmethod, classmethod)):
        return raw.__func__
    if isinstance(raw, property):
        return raw.fget
    if isinstance(raw, _CACHE):
        return raw.__wrapped__
    return raw


def original_of(raw: Any, owner: Any, name: str) -> Any:
    """Return the function in an attribute.

    If a class does not have the attribute, this is a function that calls the next method in the MRO, so that an added
    method does not hide those of mixins. If a module does not have it, it is ``None``.
    """
    if raw is not MISSING:
        return function_of(raw)
    if not isinstance(owner, type):
        return None

    def following(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(super(owner, self), name)(*args, **kwargs)

    return following


def unwrapped(raw: Any) -> Iterator[Any]:
    """Yield the function in an attribute, then the function that it wraps, and so on."""
    function = function_of(raw)
    for _ in range(32):
        if function is None:
            return
        yield function
        function = getattr(function, "__wrapped__", None)


def stock_of(function: Any) -> Any:
    """Return Lightning's function below our patches and its decorators."""
    return inspect.unwrap(getattr(function, ORIGINAL, function))


def home_of(function: Any) -> str:
    """Return the module in which a plain function was defined; "" for other objects, such as a proxy of a function."""
    return str(function.__globals__.get("__name__", "")) if type(function) is FunctionType else ""


def is_lightnings(value: Any, *path: str) -> bool:
    """True if a path of attributes leads to a function of Lightning, or to an object of one of its classes.

    Our replacements count as functions of Lightning. Calls no property that another package has defined.
    """
    if path:
        found = inspect.getattr_static(value, path[0], None)
        if type(found) is not property:
            return is_lightnings(found, *path[1:])
        return is_lightnings(found.fget) and (len(path) == 1 or is_lightnings(getattr(value, path[0]), *path[1:]))
    function = value.__func__ if type(value) in (MethodType, staticmethod, classmethod) else value
    if type(function) is FunctionType:
        if home_of(function).startswith("lightning_patches."):
            function = vars(function).get(ORIGINAL)
        return home_of(function).partition(".")[0] in ROOT_PACKAGES
    kind = type(value)
    home = inspect.getattr_static(kind, "__module__", None)
    is_known = type(home) is str and home.partition(".")[0] in ROOT_PACKAGES
    return is_known and getattr(sys.modules.get(home), kind.__name__, None) is kind


def if_stock(replacement: Any, original: Any, paths: tuple[str, ...]) -> Any:
    """Return a function that calls the replacement if all paths lead to Lightning's code, else the original."""
    parameters = replacement.__code__.co_varnames
    parts = [path.split(".") for path in paths]

    def chosen(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(parameters, args)), **kwargs}
        acts = all(is_lightnings(given.get(first), *rest) for first, *rest in parts)
        return (replacement if acts else original)(*args, **kwargs)

    return chosen


def names_in(raw: Any) -> tuple[str, ...]:
    """Return the names of the patches in a function, also below wrappers of other code."""
    for function in unwrapped(raw):
        names = getattr(function, "__dict__", {}).get(NAMES)
        if names:
            return tuple(names)
    return ()


def is_traced() -> Callable[[], bool]:
    """Return a function that returns True while torch.compile traces its caller. Always False below torch 2.1."""
    return getattr(getattr(sys.modules.get("torch"), "compiler", None), "is_compiling", bool)


def skip_frames(function: Any) -> None:
    """Make torch.compile skip the frame of a replacement and start compiling in the functions that it calls.

    Otherwise a graph break in the original would cause a second one in the replacement's frame. If compiled code calls
    the replacement, torch.compile still traces it.
    """
    torch = sys.modules.get("torch")
    if torch is None or not home_of(function).startswith("lightning_patches."):
        return  # the function is a wrapper of torch, whose code object belongs to all functions that torch wraps
    with contextlib.suppress(Exception):  # this torch has no compiler, or another private API
        _code_skipper(torch)(function.__code__)


@functools.lru_cache(maxsize=None)
def _code_skipper(torch: Any) -> Callable[[CodeType], object]:
    frames = torch._C._dynamo.eval_frame
    if not hasattr(frames, "set_code_exec_strategy"):
        return frames.skip_code  # type: ignore[no-any-return]
    skip = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
    return lambda code: frames.set_code_exec_strategy(code, skip)


class _Signature(inspect.Signature):
    """The signature of a function, computed on first use."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @property
    def _read(self) -> inspect.Signature:
        return inspect.signature(self._function)

    @property
    def parameters(self) -> Any:
        return self._read.parameters

    @property
    def return_annotation(self) -> Any:
        return self._read.return_annotation

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        return self._read.replace(**changes)

    __replace__ = replace  # type: ignore[assignment]  # for copy.replace of Python 3.13 and later

    def __reduce__(self) -> Any:
        return self._read.__reduce__()


class _Annotations(Dict[str, Any]):
    """The annotations of an original function, resolved on access.

    ``typing.get_type_hints`` of the replacement would look up the names in the replacement's module, where they don't
    exist.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(getattr(function, "__annotations__", {}))
        self._function = function

    def _read(self) -> dict[str, Any]:
        try:
            extras: dict[str, Any] = {"include_extras": True} if sys.version_info >= (3, 9) else {}
            return typing.get_type_hints(self._function, **extras)
        except Exception:
            return dict(getattr(self._function, "__annotations__", {}))  # unresolved

    def __iter__(self) -> Iterator[str]:
        return super().__iter__()  # overridden so that dict(self) calls __getitem__

    def __getitem__(self, name: str) -> Any:
        return self._read()[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self._read().get(name, default)

    def __reduce__(self) -> Any:
        return dict, (dict(getattr(self._function, "__annotations__", {})),)

    def items(self) -> Any:
        return self._read().items()

    def values(self) -> Any:
        return self._read().values()


def copy_metadata(replacement: Any, raw: Any, owner: Any, name: str, names: tuple[str, ...]) -> Any:
    """Copy the metadata of the original to the replacement, so that pickle, help() and signature() still work.

    Args:
        replacement: the new function.
        raw: the original value of the attribute; ``MISSING`` if it did not exist.
        owner: the module or class that has the attribute.
        name: name of the attribute.
        names: names of the patches in the replacement.
    """
    original = function_of(raw) if raw is not MISSING else None
    if original is not None:
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(replacement, attribute, getattr(original, attribute))
        _take_signature(replacement, original)
        extra = {k: v for k, v in vars(original).items() if k not in (NAMES, ORIGINAL, "__wrapped__")}
        vars(replacement).update(extra)
        setattr(replacement, ORIGINAL, original)
        if isinstance(owner, type) and _passes_on_keywords(owner):
            replacement.__wrapped__ = original
    elif isinstance(owner, type):
        replacement.__module__ = owner.__module__
        replacement.__qualname__ = f"{owner.__qualname__}.{name}"
        inherited = function_of(getattr(super(owner, owner), name, None))
        if isinstance(inherited, FunctionType):
            replacement.__doc__ = inherited.__doc__
            _take_signature(replacement, inherited)
    else:
        replacement.__module__, replacement.__qualname__ = owner.__name__, name
    replacement.__name__ = name
    setattr(replacement, NAMES, names)
    return replacement


def _passes_on_keywords(owner: type) -> bool:
    """True if the constructor of a class accepts ``**kwargs``.

    For such classes, jsonargparse (LightningCLI) reads the source of methods, which it finds through ``__wrapped__``.
    LightningModule is excluded because of ``is_overridden``, see :data:`ORIGINAL`.
    """
    code = getattr(stock_of(owner.__init__), "__code__", None)  # type: ignore[misc]
    return code is not None and bool(code.co_flags & inspect.CO_VARKEYWORDS) and owner.__name__ != "LightningModule"


def _take_signature(replacement: Any, original: Any) -> None:
    replacement.__annotations__ = _Annotations(original)
    replacement.__signature__ = _Signature(original)
    _take_defaults(replacement, original)


def _take_defaults(replacement: Any, original: Any) -> None:
    """Copy the original's defaults if that changes no call.

    This holds if the replacement has the same parameters, or passes on ``*args`` and ``**kwargs``.
    """
    if not isinstance(original, FunctionType):
        return
    ours, theirs = replacement.__code__, original.__code__
    passes_on = ours.co_argcount <= 1 and ours.co_flags & inspect.CO_VARARGS and ours.co_flags & inspect.CO_VARKEYWORDS
    if (passes_on and not ours.co_kwonlyargcount) or _parameters(ours) == _parameters(theirs):
        replacement.__defaults__, replacement.__kwdefaults__ = original.__defaults__, original.__kwdefaults__


def _parameters(code: CodeType) -> tuple[int, tuple[str, ...]]:
    return code.co_argcount, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def wrap_like(raw: Any, function: Any) -> Any:
    """Wrap a function in the same kind of descriptor or ``lru_cache`` as ``raw``."""
    if isinstance(raw, (staticmethod, classmethod)):
        return type(raw)(function)
    if isinstance(raw, property):
        return property(function, raw.fset, raw.fdel, raw.__doc__)
    if isinstance(raw, _CACHE):
        return functools.lru_cache(raw.cache_info().maxsize)(function)
    return function
