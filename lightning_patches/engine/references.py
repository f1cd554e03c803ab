"""Other references to a patched function: in modules that imported it, classes, and containers."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Iterable

from lightning_patches.engine.functions import DESCRIPTORS, MISSING, function_of
from lightning_patches.engine.hooks import ROOT_PACKAGES

if TYPE_CHECKING:
    from lightning_patches.engine.attributes import Slot


def follow(slots: Iterable[Slot], modules: Callable[[], Iterable[ModuleType]]) -> None:
    """Replace the earlier contents of module-level slots in modules that imported them (``from x import f``).

    After an interruption, another call does what is left.

    Args:
        slots: the slots.
        modules: returns the modules to look into; called only if a slot has changed.
    """
    changed = [slot for slot in slots if slot.outdated]
    moved = {}
    for slot in changed:
        new = slot.current
        for old in slot.outdated if isinstance(slot.owner, ModuleType) and new is not MISSING else ():
            moved[id(old)] = (old, new)
    for module in modules() if moved else ():
        contents = _contents(module)
        for name, value in list(contents.items()):
            old, new = moved.get(id(value), (MISSING, MISSING))
            if value is old:
                contents[name] = new
    for slot in changed:
        slot.outdated.clear()


def modules_behind(module: ModuleType) -> list[ModuleType]:
    """Return the modules that may have copies from a module that is being imported.

    These are modules of Lightning that it imports in turn, so they come after it in ``sys.modules``.
    """
    behind = []
    for name in reversed(list(sys.modules)):
        other: Any = sys.modules.get(name)
        if name.partition(".")[0] in ROOT_PACKAGES and issubclass(type(other), ModuleType):
            behind.append(other)
        if other is module:
            break
    return behind


def all_modules() -> list[ModuleType]:
    """Return the imported modules, each once.

    Don't read attributes of these modules: on a lazy module, even ``__class__`` triggers the import.
    """
    every: dict[int, Any] = {id(module): module for module in list(sys.modules.values())}
    return [module for module in every.values() if issubclass(type(module), ModuleType)]


def _contents(module: ModuleType) -> dict[str, Any]:
    return ModuleType.__getattribute__(module, "__dict__") or {}


_contents_of_class = type.__dict__["__dict__"].__get__
"""``vars()``, which a metaclass cannot answer in its own way."""


def find(wanted: dict[int, Any]) -> dict[int, list[str]]:
    """Find references to functions that :func:`follow` does not update: in classes, and in containers of modules.

    Args:
        wanted: functions by ``id``.

    Returns:
        The names of the places for each function, such as ``"helpers.Loader.load"`` or ``"helpers.TABLE['load']"``.
    """
    found: dict[int, list[str]] = {}

    # type() and not isinstance(): reading __class__ of a proxy may import its target, warn
    # (torch.distributed.reduce_op) or raise.
    def look(value: Any, place: str, key: Any = MISSING) -> None:
        function = function_of(value) if issubclass(type(value), DESCRIPTORS) else value
        if wanted.get(id(function)) is function and function is not None:
            found.setdefault(id(function), []).append(place if key is MISSING else f"{place}[{key!r}]")

    for module in all_modules() if wanted else ():
        contents = _contents(module)
        home = contents.get("__name__")
        if home is None:
            home = next((key for key, other in list(sys.modules.items()) if other is module), "?")
        for name, value in list(contents.items()):
            place = f"{home}.{name}"
            look(value, place)
            if issubclass(type(value), type):
                attributes = _contents_of_class(value) or {}  # a C type that has not been used yet
                for key, item in list(attributes.items()) if attributes.get("__module__") == home else ():
                    look(item, f"{place}.{key}")
            elif type(value) is dict and not name.startswith("__"):
                for key, item in list(value.items()):
                    look(item, place, key)
            elif type(value) in (list, tuple):
                for index, item in enumerate(list(value)):
                    look(item, place, index)
    return found
