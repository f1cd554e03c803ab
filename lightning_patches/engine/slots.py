"""What stands in a slot: one attribute of one upstream module or class.

A slot knows the object that stood there and the stack of patches on top of it. What stands there is always composed
anew from the original, so that patches which share a target can come and go in any order.
"""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from types import CodeType, FunctionType, ModuleType
from typing import Any, Dict, Iterable, Iterator, Optional

from lightning_patches.engine.hooks import ROOT_PACKAGES
from lightning_patches.errors import TargetError
from lightning_patches.patch import Patch, Target

MISSING: Any = object()
NAMES = "__lightning_patches__"
"""On a replacement: names of the patches in it, innermost first."""
ORIGINAL = "__lightning_patches_original__"
"""On a replacement: the function that stood there before. Not ``__wrapped__``: Lightning's ``is_overridden`` looks
through that one on one side of its comparison only, and would take every patched base method for an override."""
_DECORATORS_OF = {*ROOT_PACKAGES, "contextlib", "functools", "lightning_utilities", "torch"}
"""Packages whose decorators Lightning uses. What any other package wraps around a function is not Lightning's."""


SINCE = "since Lightning was imported: restart Python (in a notebook, restart the kernel)"


class ReplacedError(TargetError):
    """What stands in a slot is not what Lightning's source puts there."""


class Slot:
    """One attribute of one module or class.

    Args:
        owner: the module or the class.
        attribute: the name in its ``__dict__``.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        late: its module was executed before it was patched.
    """

    def __init__(self, owner: Any, attribute: str, namespace: str, late: bool) -> None:
        self.owner = owner
        self.attribute = attribute
        self.namespace = namespace
        self.late = late
        self.original = original = self.standing
        """What stood there before, ``MISSING`` if nothing did."""
        self.current = original
        """What we have put there last."""
        self.followed = original
        """What those who imported the attribute have been given last."""
        self.made: list[FunctionType] = []
        """All functions of ours that have stood there."""
        self.layers: list[tuple[Patch, Target]] = []

    @property
    def name(self) -> str:
        """``"lightning.pytorch.trainer.trainer.Trainer.fit"``"""
        owner = self.owner
        home = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
        return f"{home}.{self.attribute}"

    @property
    def standing(self) -> Any:
        return self.owner.__dict__.get(self.attribute, MISSING)

    @property
    def is_ours(self) -> bool:
        """Whether a replacement of ours is there, seen through whatever others wrapped around it."""
        return bool(names_in(self.standing))

    @property
    def is_taken(self) -> bool:
        """Whether others have put an object of theirs there, and no patch is to come back if they take it away."""
        return not self.layers and self.standing is not self.current and self.standing is not self.original

    def has(self, patch: Patch) -> bool:
        return any(layer.name == patch.name for layer, _ in self.layers)

    def compose(self) -> bool:
        """Put there what the layers make of the original. False if somebody else's object stands there."""
        standing = self.standing
        if standing is not self.current:
            if standing is not self.original or self.layers:
                return False
            self.current = standing  # somebody has put it back
        wanted = self.original
        if self.layers:
            function: Any = function_of(self.original) if self.original is not MISSING else None
            names: tuple[str, ...] = ()
            for patch, target in self.layers:
                names += (patch.name,)
                replacement = target.build(function, self.namespace)
                if not isinstance(replacement, FunctionType) or replacement is function:
                    raise TypeError(f"{patch.name} built no function of its own for {target.location}")
                function = _dress(replacement, self, names)
            self.made.append(function)
            wanted = _like(self.original, function)
        # An interruption between these two leaves the original standing, which can be composed anew.
        self.current = wanted
        if wanted is MISSING:
            if standing is not MISSING:
                delattr(self.owner, self.attribute)
        elif wanted is not standing:
            setattr(self.owner, self.attribute, wanted)
        return True


# ---------------------------------------------------------------- looking


def resolve(module: ModuleType, target: Target) -> tuple[Any, str]:
    """The owner of a target and the attribute's name in it.

    Raises:
        TargetError: there is no such class in the module.
    """
    *path, attribute = target.attribute.split(".")
    owner: Any = module
    for name in path:
        owner = getattr(owner, "__dict__", {}).get(name)
        if owner is None:
            raise TargetError(f"{target.location}: {module.__name__} has no {name}")
    return owner, attribute


def stands_in(patch: Patch, module: ModuleType, target: Target) -> bool:
    """Whether a patch is in place, seen through whatever others wrapped around it."""
    try:
        owner, attribute = resolve(module, target)
    except TargetError:
        return False
    return patch.name in names_in(getattr(owner, "__dict__", {}).get(attribute))


def names_in(raw: Any) -> tuple[str, ...]:
    """Names of the patches in a function, looked for through whatever others wrapped around it."""
    for function in _unwrapped(raw):
        names = getattr(function, "__dict__", {}).get(NAMES)
        if names:
            return tuple(names)
    return ()


_DESCRIPTORS = (staticmethod, classmethod, property)
_CACHE: Any = type(functools.lru_cache(maxsize=None)(len))


def function_of(raw: Any) -> Any:
    """The function in a descriptor, or behind a cache."""
    if isinstance(raw, (staticmethod, classmethod)):
        return raw.__func__
    if isinstance(raw, property):
        return raw.fget
    if isinstance(raw, _CACHE):
        return raw.__wrapped__
    return raw


def check_shipped(module: ModuleType, target: Target, raw: Any, compare: bool) -> None:
    """See that what stands in a target is the function which the module's source defines there, below its decorators.

    Args:
        module: the upstream module.
        target: the target in it.
        raw: what stands there.
        compare: compare its bytecode with that of the source on disk: for a module that was executed before we came in.

    Raises:
        ReplacedError: it is not.
    """
    name = target.attribute.rpartition(".")[2]
    function: Any = None
    for function in _unwrapped(raw):
        home = function.__globals__.get("__name__", "?") if isinstance(function, FunctionType) else "?"
        if home.partition(".")[0] not in _DECORATORS_OF:
            break
    else:
        code = function.__code__
        if function.__globals__ is vars(module) and code.co_name == name:
            if not compare or any(_same(code, other) for other in _compiled(module, target.attribute)):
                return
            raise ReplacedError(f"the file of {target.location} has changed {SINCE}")
    code = getattr(function, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    what = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
    raise ReplacedError(
        f"other code has already replaced {target.location}: {what}{where}. It is left alone; to get the patch, remove "
        "that code, or let it run after `import lightning_patches`"
    )


def _unwrapped(raw: Any) -> Iterator[Any]:
    """The function in a slot, what it wraps, and so on."""
    function = function_of(raw)
    for _ in range(32):
        if function is None:
            return
        yield function
        function = getattr(function, "__wrapped__", None)


def _compiled(module: ModuleType, attribute: str) -> list[CodeType]:
    """What the source on disk makes of a function: several, where it is defined more than once."""
    loader: Any = getattr(module.__spec__, "loader", None)
    try:
        found = [loader.get_code(module.__name__)]
    except Exception:
        return []
    for name in attribute.split("."):
        consts = [const for code in found for const in code.co_consts]
        found = [const for const in consts if isinstance(const, CodeType) and const.co_name == name]
    return found


def _same(one: Any, other: Any) -> bool:
    """Whether two constants, or two functions' code, are equal. ``==`` of code also compares what tracing adds."""
    if not isinstance(one, CodeType) or not isinstance(other, CodeType):
        return type(one) is type(other) and repr(one) == repr(other)
    return (
        (one.co_code, one.co_names, one.co_varnames, one.co_firstlineno)
        == (other.co_code, other.co_names, other.co_varnames, other.co_firstlineno)
        and len(one.co_consts) == len(other.co_consts)
        and all(map(_same, one.co_consts, other.co_consts))
    )


# ---------------------------------------------------------------- those who imported it


def follow(slots: Iterable[Slot], modules: Iterable[ModuleType]) -> None:
    """Give what stands in module-level slots to all who hold what stood there: ``from x import f``."""
    moved = {}
    for slot in slots:
        old, new = slot.followed, slot.current
        if isinstance(slot.owner, ModuleType) and old is not new and MISSING not in (old, new):
            moved[id(old)] = (old, new)
        slot.followed = new
    for module in modules if moved else ():
        contents = _contents(module)
        for name, value in list(contents.items()):
            old, new = moved.get(id(value), (MISSING, MISSING))
            if value is old:
                contents[name] = new


def modules_behind(module: ModuleType) -> list[ModuleType]:
    """While a module is being imported, those that it imports in turn can have got hold of what is in it: Lightning's,
    and they stand behind it in ``sys.modules``."""
    behind = []
    for name in reversed(list(sys.modules)):
        other: Any = sys.modules.get(name)
        if name.partition(".")[0] in ROOT_PACKAGES and issubclass(type(other), ModuleType):
            behind.append(other)
        if other is module:
            break
    return behind


def all_modules() -> list[ModuleType]:
    """The modules that are imported, each once. None of them is asked for anything: what stands in ``sys.modules``
    until somebody uses it, as lazily loaded modules do, imports what it stands for when it is asked for an attribute,
    were it ``__class__``."""
    every: dict[int, Any] = {id(module): module for module in list(sys.modules.values())}
    return [module for module in every.values() if issubclass(type(module), ModuleType)]


def _contents(module: ModuleType) -> dict[str, Any]:
    return ModuleType.__getattribute__(module, "__dict__") or {}


_contents_of_class = type.__dict__["__dict__"].__get__
"""``vars()``, which a metaclass cannot answer in its own way."""


def holders(wanted: dict[int, Any]) -> dict[int, list[str]]:
    """Who holds a function where :func:`follow` does not reach: classes, and the containers of modules.

    Args:
        wanted: functions, by their ``id``.

    Returns:
        For each of them the names of the places, such as ``"helpers.Loader.load"`` or ``"helpers.TABLE['load']"``.
    """
    found: dict[int, list[str]] = {}

    # type() and not isinstance(): asked for its __class__, an object that stands in for another one may import that,
    # warn (torch.distributed.reduce_op) or raise.
    def look(value: Any, place: str, key: Any = MISSING) -> None:
        function = function_of(value) if issubclass(type(value), _DESCRIPTORS) else value
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
                attributes = _contents_of_class(value) or {}  # of a type of C code that nobody has used yet
                for key, item in list(attributes.items()) if attributes.get("__module__") == home else ():
                    look(item, f"{place}.{key}")
            elif type(value) is dict and not name.startswith("__"):
                for key, item in list(value.items()):
                    look(item, place, key)
            elif type(value) in (list, tuple):
                for index, item in enumerate(list(value)):
                    look(item, place, index)
    return found


# ---------------------------------------------------------------- looks


class _Signature(inspect.Signature):
    """The signature of a function, read when somebody asks for it."""

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

    __replace__ = replace  # type: ignore[assignment]  # what copy.replace calls, since Python 3.13

    def __reduce__(self) -> Any:
        return self._read.__reduce__()


class _Annotations(Dict[str, Any]):
    """The annotations of a function, equal to them, and resolved by whoever reads one: the names in them are those of
    the function's own module, and ``typing.get_type_hints`` would look for them in the replacement's."""

    def __init__(self, function: Any) -> None:
        super().__init__(getattr(function, "__annotations__", {}))
        self._function = function

    def _read(self) -> dict[str, Any]:
        try:
            extras: dict[str, Any] = {"include_extras": True} if sys.version_info >= (3, 9) else {}
            return typing.get_type_hints(self._function, **extras)
        except Exception:
            return dict(getattr(self._function, "__annotations__", {}))  # as for the function itself

    def __iter__(self) -> Iterator[str]:
        return super().__iter__()  # overridden so that dict(self) asks for each item

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


def _dress(replacement: Any, slot: Slot, names: tuple[str, ...]) -> Any:
    """Make a replacement look like what it replaces, so that pickle, help() and signature() go on as before."""
    owner = slot.owner
    original = function_of(slot.original) if slot.original is not MISSING else None
    if original is not None:
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(replacement, attribute, getattr(original, attribute))
        replacement.__annotations__ = _Annotations(original)
        replacement.__signature__ = _Signature(original)
        _take_defaults(replacement, original)
        extra = {k: v for k, v in vars(original).items() if k not in (NAMES, ORIGINAL, "__wrapped__")}
        vars(replacement).update(extra)
        setattr(replacement, ORIGINAL, original)
    elif isinstance(owner, type):
        replacement.__module__ = owner.__module__
        replacement.__qualname__ = f"{owner.__qualname__}.{slot.attribute}"
    else:
        replacement.__module__, replacement.__qualname__ = owner.__name__, slot.attribute
    replacement.__name__ = slot.attribute
    setattr(replacement, NAMES, names)
    return replacement


def _take_defaults(replacement: Any, original: Any) -> None:
    """Show the original's defaults, where that changes no call: a replacement that passes on what it is given, or has
    the same parameters."""
    if not isinstance(original, FunctionType):
        return
    ours, theirs = replacement.__code__, original.__code__
    passes_on = ours.co_argcount <= 1 and ours.co_flags & inspect.CO_VARARGS and ours.co_flags & inspect.CO_VARKEYWORDS
    if (passes_on and not ours.co_kwonlyargcount) or _parameters(ours) == _parameters(theirs):
        replacement.__defaults__, replacement.__kwdefaults__ = original.__defaults__, original.__kwdefaults__


def _parameters(code: CodeType) -> tuple[int, tuple[str, ...]]:
    return code.co_argcount, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _like(raw: Any, function: Any) -> Any:
    """The function in the same kind of descriptor, or behind such a cache."""
    if isinstance(raw, (staticmethod, classmethod)):
        return type(raw)(function)
    if isinstance(raw, property):
        return property(function, raw.fset, raw.fdel, raw.__doc__)
    if isinstance(raw, _CACHE):
        return functools.lru_cache(raw.cache_info().maxsize)(function)
    return function


def what_is_wrong_with(slot: Slot, target: Target) -> Optional[str]:
    """Why a target cannot be patched, whatever stands there."""
    if (slot.original is MISSING) != target.adds:
        return f"{target.location} is {'missing' if slot.original is MISSING else 'there already'}"
    function = function_of(slot.original)
    if slot.original is not MISSING and (not callable(function) or isinstance(function, type)):
        return f"{target.location} is not a function: it is of type {type(slot.original).__name__}"
    return None
