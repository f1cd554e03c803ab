"""Find and update other references to a replaced function: in modules that imported it, classes, and containers."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator

from lightning_patches.engine.functions import DESCRIPTORS, MISSING, function_of
from lightning_patches.engine.hooks import ROOT_PACKAGES

if TYPE_CHECKING:
    from lightning_patches.engine.attributes import PatchedAttribute


def update_copies(patched_attributes: Iterable[PatchedAttribute], modules: Callable[[], Iterable[ModuleType]]) -> None:
    """Update the copies of replaced module-level functions in modules that imported them (``from x import f``).

    After an interruption, call it again.

    Args:
        patched_attributes: the attributes. Their ``outdated`` values are replaced.
        modules: returns the modules to search; called only if an attribute was replaced.
    """
    changed = [patched for patched in patched_attributes if patched.outdated]
    moved = {}
    for patched in changed:
        new = patched.last_set
        for old in patched.outdated if isinstance(patched.owner, ModuleType) and new is not MISSING else ():
            moved[id(old)] = (old, new)
    for module in modules() if moved else ():
        contents = _contents(module)
        for name, value in list(contents.items()):
            old, new = moved.get(id(value), (MISSING, MISSING))
            if value is old:
                contents[name] = new
    for patched in changed:
        patched.outdated.clear()


def modules_imported_by(module: ModuleType) -> list[ModuleType]:
    """Return the modules of Lightning that a module has imported, which may have copies of its functions.

    They are after the module in ``sys.modules``. The result may contain further modules.
    """
    found = []
    for name in reversed(list(sys.modules)):
        other: Any = sys.modules.get(name)
        if name.partition(".")[0] in ROOT_PACKAGES and issubclass(type(other), ModuleType):
            found.append(other)
        if other is module:
            break
    return found


def all_modules() -> list[ModuleType]:
    """Return the imported modules, each once.

    Don't read attributes of these modules: for a lazy module, even reading ``__class__`` triggers the import.
    """
    every: dict[int, Any] = {id(module): module for module in list(sys.modules.values())}
    return [module for module in every.values() if issubclass(type(module), ModuleType)]


def _contents(module: ModuleType) -> dict[str, Any]:
    return ModuleType.__getattribute__(module, "__dict__") or {}


_contents_of_class = type.__dict__["__dict__"].__get__
"""Like ``vars()`` for classes, but a metaclass can't override it."""


def find(wanted: dict[int, Any]) -> dict[int, list[str]]:
    """Find references to functions that :func:`update_copies` does not update: in classes, and in lists and dicts.

    Args:
        wanted: functions by ``id``.

    Returns:
        The names of the places for each function, such as ``"helpers.Loader.load"`` or ``"helpers.TABLE['load']"``.
    """
    found: dict[int, list[str]] = {}
    for module in all_modules() if wanted else ():
        contents = _contents(module)
        home = contents.get("__name__")
        if home is None:
            home = next((key for key, other in list(sys.modules.items()) if other is module), "?")
        for name, value in list(contents.items()):
            for item, place, key in _held(home, name, value):
                function = function_of(item) if issubclass(type(item), DESCRIPTORS) else item
                if wanted.get(id(function)) is function and function is not None:
                    found.setdefault(id(function), []).append(place if key is MISSING else f"{place}[{key!r}]")
    return found


def _held(home: str, name: str, value: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield a variable of a module, and what it contains: each with its place, and its key if it is in a collection.

    Use type() and not isinstance(), which reads ``__class__``: a proxy may then import its target, warn
    (torch.distributed.reduce_op) or raise.
    """
    place = f"{home}.{name}"
    yield value, place, MISSING
    if issubclass(type(value), type):
        attributes = _contents_of_class(value) or {}  # None for a C type that was not used yet
        for key, item in list(attributes.items()) if attributes.get("__module__") == home else ():
            yield item, f"{place}.{key}", MISSING
    elif type(value) is dict and not name.startswith("__"):
        yield from ((item, place, key) for key, item in list(value.items()))
    elif type(value) in (list, tuple):
        yield from ((item, place, index) for index, item in enumerate(list(value)))
