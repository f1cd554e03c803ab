"""Fabric accepts frozen dataclasses, dataclasses with other attributes, and ranges."""

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

REFUSED = (RuntimeError, TypeError, ValueError)


def _converted(convert: Callable[[Any], Any], data: Any) -> Any:
    try:
        return convert(data)
    except REFUSED:
        return _by_parts(convert, data)


def _by_parts(convert: Callable[[Any], Any], data: Any) -> Any:
    """Convert the parts of a container that can't be converted as a whole; otherwise raise the current error."""
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        fields = {field.name: getattr(data, field.name) for field in dataclasses.fields(data) if field.init}
        return _with_fields(data, {name: _converted(convert, value) for name, value in fields.items()})
    if isinstance(data, Mapping):
        values = {key: _converted(convert, value) for key, value in data.items()}
        changed = any(values[key] is not data[key] for key in values)
        if type(data) is dict or not changed:
            return values if changed else data
    elif isinstance(data, Sequence) and not isinstance(data, str):
        pairs = [(part, _converted(convert, part)) for part in data]
        if all(new is part for part, new in pairs):
            return data
        parts = [new for _, new in pairs]
        if type(data) in (list, tuple):
            return tuple(parts) if type(data) is tuple else parts
        if isinstance(data, tuple) and hasattr(data, "_fields"):
            return type(data)(*parts)
    raise


def _with_fields(data: Any, fields: Any) -> Any:
    made = copy.copy(data)
    for name, value in fields.items():
        object.__setattr__(made, name, value)  # it may be frozen
    for name in [name for name, value in vars(type(data)).items() if isinstance(value, cached_property)]:
        vars(made).pop(name, None)
    return made


def _of_first(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def convert(collection: Any) -> Any:
        try:
            return original(collection)
        except REFUSED:
            return _by_parts(original, collection)

    return convert


def _move_data_to_device(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def move_data_to_device(batch: Any, device: Any) -> Any:
        try:
            return original(batch, device)
        except REFUSED:
            return _by_parts(lambda part: original(part, device), batch)

    return move_data_to_device


def _convert(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def convert(self: Any, data: Any) -> Any:
        try:
            return original(self, data)
        except REFUSED:
            return _by_parts(lambda part: original(self, part), data)

    return convert


def _forward(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    # The original runs the module and then fails, so it gets another function for its output.
    names = original.__globals__

    def apply_to_collection(data: Any, **kwargs: Any) -> Any:
        apply = names["apply_to_collection"]
        try:
            return apply(data, **kwargs)
        except REFUSED:
            return _by_parts(lambda part: apply(part, **kwargs), data)

    changed = {**names, "apply_to_collection": apply_to_collection}
    return FunctionType(original.__code__, changed, original.__name__, None, original.__closure__)


_PRECISION = "fabric.plugins.precision"

PATCH = Patch(
    group="crash",
    affected=(">=1.9.0,<=2.6.6",),
    targets=(
        Target("fabric.utilities.apply_func:move_data_to_device", _move_data_to_device),
        Target("fabric.wrappers:_unwrap_objects", _of_first, since="2.0.0"),
        Target("fabric.wrappers:_FabricModule.forward", _forward, since="2.3.0"),
        Target(f"{_PRECISION}.amp:MixedPrecision.convert_input", _convert, since="2.0.0"),
        Target(f"{_PRECISION}.amp:MixedPrecision.convert_output", _convert, since="2.0.0"),
    ),
    upstream=Upstream(),
    impact=Impact(
        "Batches, outputs of a Fabric module, and the state of `fabric.save` cannot contain ranges, frozen "
        "dataclasses, or dataclasses that keep a tensor outside of their fields.",
        (
            "A frozen dataclass was passed to `apply_to_collection` but this is not allowed.",
            "Fabric fails on a range in a batch with 'list' object cannot be interpreted as an integer",
        ),
        error="ValueError: A frozen dataclass was passed to `apply_to_collection` but this is not allowed.",
    ),
    note="Other containers are unchanged. In `fabric.all_reduce` and `fabric.all_gather` the error stays.",
    added="0.3.0",
)
