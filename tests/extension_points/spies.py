"""What a program may put around Lightning's functions, derived from the classes themselves.

``derived`` makes a subclass that overrides every method of a class, so that each call into a program's own code is
noted with the names and types of what it is given. It runs in the program's process.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import torch

from tests.healthy import watch
from tests.healthy.watch import CWD, digest, pl

PATCHES = os.path.join("lightning_patches", "patches")
DUNDERS = ("__iter__", "__next__", "__len__", "__getitem__", "__getstate__", "__setstate__", "__deepcopy__")
"""Of the methods with such names, those that programs give to data, samplers and modules."""
LEFT_OUT = {
    "__getstate__",  # where it is object's own
    "add_module",
    "register_module",
    "register_buffer",
    "register_parameter",
    "configure_sharded_model",  # what changes a program by being there
    "get_extra_state",
    "set_extra_state",
    "train_dataloader",
    "val_dataloader",
    "test_dataloader",
    "predict_dataloader",
    "on_validation_model_zero_grad",
}
HOME = "tests.extension_points.situations"
"""The module of the classes that are made."""
NEAR = 5
"""So many frames from a patch's function, a call is near it."""
only_ranks = False
SCALARS = (int, float, str, bool, type(None))


def note(section: str, text: object) -> None:
    """Write a line; what other threads do is written apart, since its order is that of no program."""
    if threading.current_thread() is threading.main_thread():
        watch.note(section, text)
        return
    line = f"{section} {watch.masked(text)}\n"
    with open(Path(os.environ["HEALTHY_OUT"], "threads.0"), "a") as file:
        file.write(line)


def brief(value: Any) -> str:
    """An argument in one word, without calling a method that may be a spy."""
    if isinstance(value, SCALARS):
        return repr(value)
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return f"{type(value).__name__}:{digest(value)}"
    return type(value).__name__


def called(part: str, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Note a call into the program's own code; and in a file of its own, which patch was at work."""
    if only_ranks and not torch.distributed.is_initialized():
        return  # ranks that do not know yet which they are would write into one file
    given = [*map(brief, arguments), *(f"{key}={brief(value)}" for key, value in named.items())]
    note("call", f"{part}.{name}({', '.join(given)})")
    frame, seen = sys._getframe(2), 0
    while frame is not None and seen < NEAR:
        if PATCHES in frame.f_code.co_filename:
            with open(Path(os.environ["HEALTHY_OUT"], "reached"), "a") as file:
                file.write(f"{part} {name}\n")
            return
        seen += frame.f_code.co_filename not in (__file__, "<string>")
        frame = frame.f_back  # type: ignore[assignment]


def methods(cls: type, properties: bool = False) -> Iterator[tuple[str, Any]]:
    """What a subclass may override: name, and what stands in the class that defines it."""
    seen = set(LEFT_OUT)
    for owner in cls.__mro__[:-1]:
        if owner.__module__ in ("typing", "abc", "collections.abc"):
            continue
        for name, value in vars(owner).items():
            if name in seen or (name.startswith("__") and name not in DUNDERS) or isinstance(value, type):
                continue
            if hasattr(value, "__lightning_patches__") and not hasattr(value, "__lightning_patches_original__"):
                continue  # what a patch adds: a program overrides what it stands before
            seen.add(name)
            if name.startswith("_") and name not in DUNDERS and (private_left_out(owner) or "__" in name):
                continue
            if isinstance(value, property):
                if properties:
                    yield name, value
            elif not properties and (inspect.isfunction(value) or isinstance(value, (staticmethod, classmethod))):
                yield name, value


def private_left_out(owner: type) -> bool:
    """Whether no program overrides what is private in this class: torch's classes, modules, the Trainer."""
    return (
        owner.__module__.startswith("torch")
        or issubclass(owner, (torch.nn.Module, pl.Trainer))
        or "core" in owner.__module__
    )


def _documented(name: str, signature: inspect.Signature, call: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the parameters that Lightning documents, as a user types them, that hands them to ``call``."""
    values: dict[str, Any] = {}
    typed, handed = [], []
    star = False
    for parameter in signature.parameters.values():
        default = ""
        if parameter.default is not inspect.Parameter.empty:
            values[f"_{parameter.name}"] = parameter.default
            default = f"=_{parameter.name}"
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            star = True
            typed.append(f"*{parameter.name}")
            handed.append(f"*{parameter.name}")
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            typed.append(f"**{parameter.name}")
            handed.append(f"**{parameter.name}")
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            typed += [] if star else ["*"]
            star = True
            typed.append(f"{parameter.name}{default}")
            handed.append(f"{parameter.name}={parameter.name}")
        else:
            typed.append(f"{parameter.name}{default}")
            handed.append(parameter.name)
    values["_call"] = call
    exec(f"def {name}({', '.join(typed)}):\n    return _call({', '.join(handed)})", values)
    made: Callable[..., Any] = values[name]
    return made


class Extension:
    """How the program extends Lightning: one entry of the judge's list."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.kind: str = spec["kind"]
        self.part: str = spec.get("part", "")
        self.method: str = spec.get("method", "")
        self._made: dict[Any, Any] = {}
        self.made: list[tuple[str, weakref.ref[Any]]] = []

    def make(self, cls: Any, *arguments: Any, **named: Any) -> Any:
        """An object of the program's: ``cls``, extended."""
        made = self.derived(cls)(*arguments, **named)
        with contextlib.suppress(TypeError):  # some cannot be referred to
            self.made.append((cls.__name__, weakref.ref(made)))
        if self.kind == "instance" and self.part == cls.__name__ and hasattr(made, self.method):
            self._replace(made, cls.__name__)
        return made

    def _replace(self, made: Any, part: str) -> None:
        method, name = getattr(made, self.method), self.method

        def replaced(*arguments: Any, **named: Any) -> Any:
            called(f"instance of {part}", name, arguments, named)
            return method(*arguments, **named)

        setattr(made, name, replaced)

    def alive(self) -> list[str]:
        """The program's objects that are still there."""
        return sorted(name for name, made in self.made if made() is not None)

    def derived(self, cls: Any) -> Any:
        part = cls.__name__
        if self.kind in ("documented", "args"):
            found = {name: self._spy(cls, part, name, value) for name, value in methods(cls)}
        elif self.kind == "properties":
            found = {name: _property(part, name, value) for name, value in methods(cls, properties=True)}
        elif self.kind in ("raises", "never", "fewer") and self.part == part:
            found = {name: self._spy(cls, part, name, value) for name, value in methods(cls) if name == self.method}
        elif self.kind == "bracket" and self.part == part:
            known = dict(methods(cls))
            found = {
                name: self._bracket(name, known[name], sign)
                for name, sign in ((self.spec["enter"], 1.0), (self.spec["leave"], -1.0))
                if name in known
            }
        else:
            return cls
        if (cls, part) not in self._made:  # found by its name where it is pickled, as a class of a program's is
            name = f"Own{part}"
            self._made[cls, part] = type(cls)(name, (cls,), {"__module__": HOME, "__qualname__": name, **found})
            setattr(sys.modules[HOME], name, self._made[cls, part])
        return self._made[cls, part]

    def _spy(self, cls: Any, part: str, name: str, value: Any) -> Any:
        kind, times = self.kind, [0]

        def around(method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
            called(part, name, arguments, named)
            times[0] += 1
            if kind == "raises" and times[0] == self.spec.get("time", 1):
                raise RuntimeError("on purpose")
            return None if kind == "never" else method(*arguments, **named)

        if isinstance(value, staticmethod):
            return staticmethod(
                _documented(name, inspect.signature(value.__func__), functools.partial(around, value.__func__))
            )
        if isinstance(value, classmethod):

            def of_class(owner: Any, *arguments: Any, **named: Any) -> Any:
                return around(value.__func__.__get__(owner), *arguments, **named)

            of_class.__name__ = name
            return classmethod(of_class)

        def of_object(self: Any, *arguments: Any, **named: Any) -> Any:
            return around(value.__get__(self), *arguments, **named)

        of_object.__name__ = name
        if kind == "args":
            return of_object
        signature = inspect.signature(value)
        if kind == "fewer":
            required = [p for p in signature.parameters.values() if p.default is p.empty]
            signature = signature.replace(parameters=required)
        return _documented(name, signature, of_object)

    def _bracket(self, name: str, value: Any, sign: float) -> Any:
        """One end of a pair: weights that the program lends itself from here to there."""
        spec, state = self.spec, self.spec.setdefault("state", {"lent": False})

        def of_object(self: Any, *arguments: Any, **named: Any) -> Any:
            enters = sign > 0
            if spec["enter"] == spec["leave"] or (name == "train" and spec["leave"] == "train"):
                enters = not (arguments[0] if arguments else named.get("mode", True))
            result = value.__get__(self)(*arguments, **named)
            if state["lent"] != enters:
                state["lent"] = enters
                note("lent", f"{enters} in {name}")
                shift(_module_of(self, arguments), 1.0 if enters else -1.0)
            return result

        return _documented(name, inspect.signature(value), of_object)


def shift(module: Any, by: float) -> None:
    """Lend, or give back: a sum without rounding for the weights of the programs, as they are small."""
    with torch.no_grad():
        for parameter in torch.nn.Module.parameters(module):
            parameter.data = parameter.data + 1024 * by if by > 0 else parameter.data - 1024


def _module_of(owner: Any, arguments: tuple[Any, ...]) -> Any:
    if isinstance(owner, torch.nn.Module):
        return owner
    for value in arguments:
        if isinstance(value, torch.nn.Module):
            return value
    return owner.lightning_module


def _property(part: str, name: str, value: property) -> property:
    def read(self: Any) -> Any:
        called(part, name, (), {})
        assert value.fget is not None
        return value.fget(self)

    return property(read, value.fset, value.fdel)


# --------------------------------------------------------------------------------------------------------- the wrappers


def _place(location: str) -> tuple[Any, str]:
    """The object and the attribute of ``"torch:save"`` or ``"lightning.pytorch.x:Y.z"``."""
    module, _, attribute = location.partition(":")
    owner: Any = __import__(module, fromlist=["_"])
    *path, name = attribute.split(".")
    for step in path:
        owner = getattr(owner, step)
    return owner, name


def wrap(location: str, how: str, tells: bool = True) -> None:
    """Wrap a function as tools do.

    Args:
        location: ``"torch:save"``.
        how: ``"mock"``, ``"wrapt"``; ``"checker"``, which looks at the arguments as the signature names and
            types them; ``"plain"``, a function without the signature of its original; ``"seen"``, only to know
            whether it is called.
        tells: note each call. Where a patch calls the function once more, that is seen by nobody's own code.
    """
    try:
        owner, name = _place(location)
    except (AttributeError, ImportError):  # this release does not have it
        return
    raw = inspect.getattr_static(owner, name, None)
    original = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
    if not inspect.isfunction(original):
        return
    label = location.rpartition(":")[2]

    def noted(*arguments: Any, **named: Any) -> Any:
        if how == "seen":
            with open(Path(os.environ["HEALTHY_OUT"], "reached"), "a") as file:
                file.write(f"{location}\n")
        elif tells:
            called("wrapped", label, arguments, named)
        return original(*arguments, **named)

    made: Any
    if how == "mock":
        from unittest import mock

        mock.patch.object(owner, name, autospec=True, side_effect=noted).start()
        return
    if how == "wrapt":
        import wrapt

        def wrapper(wrapped: Any, instance: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
            if tells:
                called("wrapped", label, arguments, named)
            return wrapped(*arguments, **named)

        setattr(owner, name, wrapt.FunctionWrapper(raw, wrapper))
        return
    if how in ("checker", "seen"):
        signature = inspect.signature(original)

        @functools.wraps(original)
        def made(*arguments: Any, **named: Any) -> Any:
            bound = signature.bind(*arguments, **named)
            for key, value in bound.arguments.items():
                kind = original.__annotations__.get(key)
                if isinstance(kind, type) and not isinstance(value, kind):
                    raise TypeError(f"{label}: {key} is no {kind.__name__}")
            return noted(*arguments, **named)

    else:
        made = noted
    setattr(owner, name, type(raw)(made) if isinstance(raw, (staticmethod, classmethod)) else made)


# ---------------------------------------------------------------------------------------------------------------- files


def watch_files(directory: Optional[str] = None) -> None:
    """From now on each change of a file below the working directory is noted, at its moment."""
    below = os.path.realpath(directory or CWD)

    def seen(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in (
            "open",
            "os.rename",
            "os.remove",
            "os.mkdir",
            "os.rmdir",
            "os.link",
            "os.symlink",
            "os.truncate",
        ):
            return
        given = arguments[: 2 if event in ("os.rename", "os.link") else 1]
        paths = [os.path.realpath(os.fspath(value)) for value in given if isinstance(value, (str, os.PathLike))]
        if not any(path.startswith(below) for path in paths) or "__pycache__" in paths[0]:
            return
        if event == "open" and not (len(arguments) > 2 and isinstance(arguments[2], int) and arguments[2] & 3):
            return
        names = [os.path.relpath(path, below) if path.startswith(below) else "<elsewhere>" for path in paths]
        note("touched", re.sub("[0-9a-f]{32}", "<random>", f"{event} {' '.join(names)}"))

    sys.addaudithook(seen)
