"""Extensions of Lightning by a program: subclasses, replaced methods, swapped weights, wrapped functions.

``own(cls, ...)`` creates an object of an extended class. The extension is chosen at random (`KINDS`). Methods are not
listed by name: they are taken from the classes, and recorded when Lightning calls them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import multiprocessing
import os
import random
import resource
import signal
import sys
import types
import warnings
import weakref
from typing import Any, Callable, Iterator
from unittest import mock

import torch
import wrapt

from tests.differential import substitutes
from tests.differential.observing import module, note, pl, shown, tensors_of

DUNDERS = ("__iter__", "__next__", "__len__", "__getitem__", "__getstate__", "__setstate__", "__deepcopy__")
"""Of the methods with such names, those that programs give to data, samplers and modules."""
LEFT_OUT = {
    *("add_module", "register_module", "register_buffer", "register_parameter", "configure_sharded_model"),
    *("get_extra_state", "set_extra_state", "on_validation_model_zero_grad", "update_agg_funcs"),
    *(f"{stage}_dataloader" for stage in ("train", "val", "test", "predict")),
}
"""Methods that no program overrides, or whose existence changes the program."""
LENT = ("validation", "validation_epoch", "validation_batch", "train_batch")
BRACKETS = (*((f"on_{when}_start", f"on_{when}_end") for when in LENT), ("eval", "train"))
"""Pairs of methods between which a program may lend itself other weights: an average, a merged layer."""
QUIET = ("torch", "tests", "differential_own")
"""Packages whose reads are consequences of calls."""
HOME = types.ModuleType("differential_own")
"""The module of the classes that are made, where pickle finds them."""
sys.modules[HOME.__name__] = HOME


def called(part: str, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    given = [*map(shown, arguments), *(f"{key}={shown(value)}" for key, value in named.items())]
    note("call", f"{part}.{name}({', '.join(given)})")


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the methods and properties that a subclass may override, with their definitions."""
    seen = {*LEFT_OUT}
    for owner in cls.__mro__[:-1]:
        if owner.__module__ in ("typing", "abc", "collections.abc"):
            continue
        public = owner.__module__.startswith("torch") or issubclass(owner, (torch.nn.Module, pl.Trainer))
        for name, value in vars(owner).items():
            adds = hasattr(value, "__lightning_patches__") and not hasattr(value, "__lightning_patches_original__")
            if name in seen or adds or (name.startswith("__") and name not in DUNDERS):
                continue  # added by a patch, not a method of this release
            seen.add(name)
            if name.startswith("_") and name not in DUNDERS and (public or "core" in owner.__module__ or "__" in name):
                continue
            if inspect.isfunction(value) or isinstance(value, (staticmethod, classmethod, property)):
                yield name, value


def _documented(name: str, signature: inspect.Signature, call: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the parameters that Lightning documents, typed as a user types them, that calls ``call``."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    values: dict[str, Any] = {f"_{p.name}": p.default for p in bare}
    marked = [p.replace(default=_Name(f"_{p.name}")) if p.default is not p.empty else p for p in bare]
    text = str(signature.replace(parameters=marked, return_annotation=signature.empty))
    prefix = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    handed = [f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else prefix.get(p.kind, "") + p.name for p in bare]
    values["_call_"] = call
    exec(f"def {name}{text}:\n    return _call_({', '.join(handed)})", values)
    made: Callable[..., Any] = values[name]
    return made


class _Name(str):
    def __repr__(self) -> str:
        return str(self)


class Own:
    """Create extended objects of a program. ``spec`` is the kind of extension and its random choices."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.kind: str = spec.get("kind", "plain")
        self._made: dict[Any, Any] = {}
        self._seen: list[tuple[str, str]] = []
        self._lent = False
        self._objects: list[tuple[str, weakref.ref[Any]]] = []

    def __call__(self, cls: Any, *arguments: Any, **named: Any) -> Any:
        """Return an object of the extended ``cls``."""
        made = self.derived(cls)(*arguments, **named)
        with contextlib.suppress(TypeError):  # some objects have no weak references
            self._objects.append((cls.__name__, weakref.ref(made)))
        if self.kind == "replaced on the object":
            found = sorted(name for name, value in methods(cls) if inspect.isfunction(value) and "__" not in name)
            for name in random.Random(f"{self.spec['at']} {cls.__name__}").sample(found, min(2, len(found))):
                self._replace(made, cls.__name__, name)
        return made

    def _replace(self, made: Any, part: str, name: str) -> None:
        method = getattr(made, name)

        def replaced(*arguments: Any, **named: Any) -> Any:
            called(f"object of {part}", name, arguments, named)
            return method(*arguments, **named)

        with contextlib.suppress(AttributeError):
            setattr(made, name, replaced)

    def alive(self) -> list[str]:
        """Return the program's objects that still exist."""
        return sorted(name for name, made in self._objects if made() is not None)

    def derived(self, cls: Any) -> Any:
        """Return the extended class."""
        part = cls.__name__
        if self.kind in SPIES:
            found = {name: self._spy(part, name, value) for name, value in methods(cls)}
            if self.kind == "reads" and not issubclass(cls, pl.Trainer):
                found["__getattribute__"] = self._reads(part)
        elif self.kind == "lends weights":
            known, (enter, leave) = dict(methods(cls)), BRACKETS[self.spec["at"]]
            both = enter in known and leave in known
            found = {n: self._lends(n, known[n], n == enter) for n in (enter, leave)} if both else {}
        else:
            return cls
        if cls not in self._made:
            found = {name: value for name, value in found.items() if value is not None}
            name = f"Own{part}"
            self._made[cls] = type(cls)(name, (cls,), {"__module__": HOME.__name__, "__qualname__": name, **found})
            setattr(HOME, name, self._made[cls])
        return self._made[cls]

    def _spy(self, part: str, name: str, value: Any) -> Any:
        if (self.kind == "properties") != isinstance(value, property):
            return None
        times = [0]

        def around(method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
            called(part, name, arguments, named)
            times[0] += 1
            if (part, name) not in self._seen:
                self._seen.append((part, name))
            method_of = self.spec.get("method", "")
            chosen = method_of == f"{part}.{name}" or self._seen.index((part, name)) == self.spec.get("at")
            if chosen and self.kind == "raises" and times[0] == self.spec["time"]:
                raise RuntimeError("on purpose")
            return None if chosen and self.kind == "does nothing" else method(*arguments, **named)

        if isinstance(value, property):
            assert value.fget is not None
            return property(lambda owner: around(value.fget, owner), value.fset, value.fdel)  # type: ignore[arg-type]
        if isinstance(value, staticmethod):
            signature = inspect.signature(value.__func__)
            return staticmethod(_documented(name, signature, functools.partial(around, value.__func__)))
        is_of_class = isinstance(value, classmethod)
        function = value.__func__ if is_of_class else value

        def bound(owner: Any, *arguments: Any, **named: Any) -> Any:
            return around(function.__get__(owner), *arguments, **named)

        bound.__name__ = name
        if is_of_class or self.kind == "any arguments":
            return classmethod(bound) if is_of_class else bound
        signature = inspect.signature(value)
        if self.kind == "fewer arguments" and random.Random(f"{self.spec['at']} {part} {name}").random() < 0.1:
            signature = signature.replace(parameters=[p for p in signature.parameters.values() if p.default is p.empty])
        return _documented(name, signature, bound)

    def _reads(self, part: str) -> Any:
        """Return ``__getattribute__`` that notes which attributes Lightning reads."""

        def read(owner: Any, name: str) -> Any:
            reader = sys._getframe(1).f_globals.get("__name__", "")
            if reader.partition(".")[0] not in QUIET and name != "__class__":
                note("read", f"{part}.{name}")
            return object.__getattribute__(owner, name)

        return read

    def _lends(self, name: str, value: Any, enters: bool) -> Any:
        """Return one hook of a pair: the first swaps other weights in, the second restores them."""

        def of_object(owner: Any, *arguments: Any, **named: Any) -> Any:
            result = value.__get__(owner)(*arguments, **named)
            given = (owner, *arguments)
            root = next((each for each in given if isinstance(each, torch.nn.Module)), None)
            if root is not None and self._lent != enters:
                self._lent = enters
                note("call", f"lends {enters} in {name}")
                with torch.no_grad():  # exact, since the programs' weights are small
                    for tensor in tensors_of(root):
                        if isinstance(tensor, torch.nn.Parameter):
                            tensor.data = tensor.data + (1024 if enters else -1024)
            return result

        return _documented(name, inspect.signature(value), of_object)


SPIES = ("overridden", "reads", "any arguments", "fewer arguments", "properties", "raises", "does nothing")


def wrap(location: str, how: str) -> None:
    """Wrap ``"torch:save"``, or ``"pytorch.x:Y.z"`` of Lightning, as tools do. ``"plain"`` lacks the signature of the
    original; ``"checker"`` checks the arguments against the signature and its types."""
    name, _, attribute = location.partition(":")
    try:
        owner: Any = torch if name == "torch" else module(name)
        *path, name = attribute.split(".")
        owner = functools.reduce(getattr, path, owner)
    except (AttributeError, ImportError):  # this release does not have it
        return
    raw = inspect.getattr_static(owner, name, None)
    original = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
    if not inspect.isfunction(original):
        return

    def noted(*arguments: Any, **named: Any) -> Any:
        called("wrapped", attribute, arguments, named)
        return original(*arguments, **named)

    def wrapper(wrapped: Any, instance: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        called("wrapped", attribute, arguments, named)
        return wrapped(*arguments, **named)

    def checked(*arguments: Any, **named: Any) -> Any:
        for key, value in inspect.signature(original).bind(*arguments, **named).arguments.items():
            kind = original.__annotations__.get(key)
            if isinstance(kind, type) and not isinstance(value, kind):
                raise TypeError(f"{attribute}: {key} is no {kind.__name__}")
        return noted(*arguments, **named)

    if how == "mock":
        mock.patch.object(owner, name, autospec=True, side_effect=noted).start()
    elif how == "wrapt":
        setattr(owner, name, wrapt.FunctionWrapper(raw, wrapper))
    else:
        made: Any = functools.wraps(original)(checked) if how == "checker" else noted
        setattr(owner, name, type(raw)(made) if isinstance(raw, (staticmethod, classmethod)) else made)


def arrange(spec: dict[str, Any]) -> None:
    """Set up the extension before the program starts."""
    kind = spec.get("kind")
    if kind == "wraps":
        wrap(spec["what"], spec["how"])
    elif kind == "stand-ins":
        substitutes.watch()
    elif kind == "warnings are errors":
        if "lightning_patches" in sys.modules:
            warnings.simplefilter("error", sys.modules["lightning_patches"].LightningPatchesWarning)
    elif kind == "full disk":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (spec["bytes"], resource.RLIM_INFINITY))
    elif kind == "spawned workers":
        multiprocessing.set_start_method("spawn", force=True)
    elif kind == "registers":
        import fsspec  # type: ignore[import-untyped]

        known = fsspec.get_filesystem_class(spec["scheme"])
        derived = Own({"kind": "overridden"}).derived(known)
        fsspec.register_implementation(spec["scheme"], derived, clobber=True)
    elif kind == "read-only" and os.getuid() == 0:
        os.makedirs("best")
        os.setuid(65534)
