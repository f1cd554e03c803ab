"""Call what the default patches replace with a stand-in for the Trainer that has exactly what stock reads.

A forked process records what the original reads of the Trainer. Then two more call the original and the replacement
with an object that has only that, and with all arguments by name. Imported only in the program's process.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
import types
from contextlib import nullcontext
from enum import Enum
from typing import Any, Callable, Iterable, Iterator

import torch

from lightning_patches.engine import distributions, functions, gate
from lightning_patches.patches import all_patches
from tests.differential.observing import LIGHTNING, MAIN, note, pl, shown

PLAIN = (str, Enum, int, float, torch.nn.Module, torch.Tensor, pl.Callback, type(None), type, types.ModuleType)
"""Values that a stand-in has as they are."""
PLACES = ("trainer", "_trainer")
"""Attributes in which Lightning's objects keep the Trainer."""


class Node:
    """What was read of an object: the attributes, and the results of its calls."""

    def __init__(self, value: Any) -> None:
        self.value, self.parts, self.results = value, {}, []  # type: ignore[var-annotated]

    def recorder(self) -> Any:
        """Return an object that passes everything on, and records what is read."""
        value = self.value
        if inspect.isroutine(value):

            def call(*args: Any, **kwargs: Any) -> Any:
                self.results.append(value(*args, **kwargs))
                return self.results[-1]

            return call
        if isinstance(value, PLAIN) or type(value).__module__.partition(".")[0] not in distributions.ROOT_PACKAGES:
            return value

        def read(_: Any, name: str) -> Any:
            found = getattr(value, name)
            return found if name == "__class__" else self.parts.setdefault(name, Node(found)).recorder()

        methods = {"__getattribute__": read, "__setattr__": lambda _, name, new: setattr(value, name, new)}
        return type("Recorder", (), methods)()

    def stand_in(self) -> Any:
        """Return an object that has only what was read."""
        value = self.value
        if self.results:
            results = iter([nullcontext() if hasattr(result, "__enter__") else result for result in self.results])
            return lambda *args, **kwargs: next(results)
        if self.recorder() is value or inspect.isroutine(value):
            return value
        made = type("StandIn", (), {"__class__": property(lambda _: type(value))})()
        for name, part in self.parts.items():
            made.__dict__[name] = part.stand_in()
        return made


def trainers(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the Trainer among the arguments of a call, and in their attributes."""
    for value in values:
        state = {"": value} if isinstance(value, pl.Trainer) else getattr(value, "__dict__", {})
        yield from (state[place] for place in ("", *PLACES) if isinstance(state.get(place), pl.Trainer))


def place(trainer: Any, by_name: dict[str, Any]) -> None:
    """Replace the Trainer in the arguments of a call, and in their attributes."""
    for name, value in by_name.items():
        holder = by_name if isinstance(value, pl.Trainer) else getattr(value, "__dict__", {})
        for key in (name,) if holder is by_name else PLACES:
            if isinstance(holder.get(key), pl.Trainer):
                holder[key] = trainer


def forked(work: Callable[[], Any]) -> Any:
    """Return what a function returns in a forked process, or ``None``."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            os.close(reader)
            os.write(writer, json.dumps(work()).encode()[:60000])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def outcome(function: Callable[..., Any], call: inspect.BoundArguments) -> str:
    """Return how a call ends. Arguments after the first one are given by name."""
    parameters = call.signature.parameters
    args, kwargs = call.args, call.kwargs
    if all(one.kind is not one.VAR_POSITIONAL for one in parameters.values()):
        args, kwargs = args[:1], {**dict(zip([*parameters][1:], args[1:])), **kwargs}
    try:
        return f"returns {shown(function(*args, **kwargs))}"
    except BaseException as error:
        return f"raises {shown(error)}"


def compare(original: Any, replacement: Any, call: inspect.BoundArguments) -> list[str]:
    read = Node(next(trainers(call.arguments.values())))
    place(read.recorder(), call.arguments)
    outcome(original, call)

    def end(function: Any) -> str:
        place(read.stand_in(), call.arguments)
        return outcome(function, call)

    return [str(forked(lambda function=function: end(function))) for function in (original, replacement)]  # type: ignore[misc]


def observed(location: str, original: Any, replacement: Any) -> Any:
    signature, left = inspect.signature(original), [2]

    def function(*args: Any, **kwargs: Any) -> Any:
        if left[0] and os.getpid() == MAIN and any(trainers([*args, *kwargs.values()])):
            left[0] -= 1
            call = signature.bind(*args, **kwargs)
            note("stand-in", json.dumps([location, *(forked(lambda: compare(original, replacement, call)) or ())]))
        return replacement(*args, **kwargs)

    function.__name__, function.__signature__ = original.__name__, signature  # type: ignore[attr-defined]
    return function


def watch() -> None:
    """Do this at the first calls of each function that a default patch replaces."""
    namespace = distributions.find("lightning" if LIGHTNING else "pytorch_lightning")
    assert namespace is not None
    for patch in all_patches():
        for target in gate.targets_in(patch, namespace):
            owner = sys.modules.get(distributions.module_name(namespace.name, target.module))
            *path, name = target.attribute.split(".")
            for part in path:
                owner = getattr(owner, part, None)
            raw = vars(owner).get(name) if owner is not None else None
            original = getattr(raw, functions.ORIGINAL, None)
            if inspect.isfunction(raw) and original is not None:
                setattr(owner, name, observed(target.location, original, raw))
