"""The state of a patched attribute of an upstream module or class, and checks of targets.

A :class:`PatchedAttribute` has the original object and the patches on top of it. The replacement is always composed
from the original, so that patches with a shared target can be added and removed in any order.
"""

from __future__ import annotations

from types import CodeType, FunctionType, ModuleType
from typing import Any, Optional

from lightning_patches.engine import functions
from lightning_patches.engine.functions import MISSING, function_of, names_in, unwrapped
from lightning_patches.engine.hooks import ROOT_PACKAGES
from lightning_patches.errors import TargetError
from lightning_patches.patch import Patch, Target

_DECORATORS_OF = {*ROOT_PACKAGES, "contextlib", "functools", "lightning_utilities", "torch"}
"""Packages whose decorators Lightning uses. A wrapper from another package is a change by other code."""


SINCE = "since Lightning was imported: restart Python (in a notebook, restart the kernel)"


class ReplacedError(TargetError):
    """The attribute is not the object that Lightning's source defines."""


class PatchedAttribute:
    """One attribute of one module or class.

    Args:
        owner: the module or the class.
        attribute: the name in the owner's ``__dict__``.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        late: True if the module was executed before it was patched.
    """

    def __init__(self, owner: Any, attribute: str, namespace: str, late: bool) -> None:
        self.owner = owner
        self.attribute = attribute
        self.namespace = namespace
        self.late = late
        self.original = self._last_set = self._written = self.present
        """The original object; ``MISSING`` if the attribute did not exist."""
        self.outdated: list[Any] = []
        """Earlier values, which modules that imported the attribute may still have."""
        self.created: list[FunctionType] = []
        """All replacements that were composed for this attribute."""
        self.layers: list[tuple[Patch, Target]] = []
        """The patches, innermost first."""

    @property
    def name(self) -> str:
        """``"lightning.pytorch.trainer.trainer.Trainer.fit"``"""
        owner = self.owner
        home = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
        return f"{home}.{self.attribute}"

    @property
    def present(self) -> Any:
        """The value that the attribute has now; ``MISSING`` if it does not exist."""
        return self.owner.__dict__.get(self.attribute, MISSING)

    @property
    def last_set(self) -> Any:
        """The object that this package set last."""
        if self.present is self._written:
            self._last_set = self._written  # an interruption came right after the attribute was set
        return self._last_set

    @property
    def is_stale(self) -> bool:
        """True if the layers have changed since the object was composed."""
        return tuple(patch.name for patch, _ in self.layers) != names_in(self.last_set)

    @property
    def is_ours(self) -> bool:
        """True if the attribute is our replacement, possibly wrapped by other code."""
        return bool(names_in(self.present))

    @property
    def is_taken(self) -> bool:
        """True if other code has replaced the attribute, and no patch is applied to it."""
        return not self.layers and self.present is not self.last_set and self.present is not self.original

    def has(self, patch: Patch) -> bool:
        return any(layer.name == patch.name for layer, _ in self.layers)

    def compose(self) -> bool:
        """Set the attribute to the composed replacement. Return False if other code has replaced the attribute."""
        present = self.present
        if present is not self.last_set:
            if present is not self.original or self.layers:
                return False
            self._last_set = self._written = present  # other code has restored the original
        wanted = self.original
        if self.layers:
            function: Any = functions.original_of(self.original, self.owner, self.attribute)
            names: tuple[str, ...] = ()
            for patch, target in self.layers:
                names += (patch.name,)
                replacement = target.build(function, self.namespace)
                if not isinstance(replacement, FunctionType) or replacement is function:
                    raise TypeError(f"{patch.name} built no new function for {target.location}")
                if target.stock:
                    functions.skip_frames(replacement)
                    replacement = functions.if_stock(replacement, function, target.stock)
                function = functions.copy_metadata(replacement, self.original, self.owner, self.attribute, names)
                functions.skip_frames(function)
            self.created.append(function)
            wanted = functions.wrap_like(self.original, function)
        self._write(wanted)
        return True

    def _write(self, wanted: Any) -> None:
        """Set the attribute. The order of the steps keeps the state consistent after an interruption at any of them."""
        present = self.present
        if present is wanted:
            return
        self._written = wanted
        if present is not MISSING:
            self.outdated.append(present)
        if wanted is MISSING:
            delattr(self.owner, self.attribute)
        else:
            setattr(self.owner, self.attribute, wanted)
        self._last_set = wanted


def resolve(module: ModuleType, target: Target) -> tuple[Any, str]:
    """Return the owner of a target, a module or class, and the attribute's name in it.

    Raises:
        TargetError: the module does not have this class.
    """
    *path, attribute = target.attribute.split(".")
    owner: Any = module
    for name in path:
        owner = getattr(owner, "__dict__", {}).get(name)
        if owner is None:
            raise TargetError(f"{target.location}: {module.__name__} has no {name}")
    return owner, attribute


def is_optional_and_missing(module: ModuleType, target: Target) -> bool:
    """True if the target is optional, and the module was executed without defining its class."""
    try:
        resolve(module, target)
    except TargetError:
        return target.optional
    return False


def is_applied_to(patch: Patch, module: ModuleType, target: Target) -> bool:
    """True if a patch is applied to a target, also below a wrapper of other code."""
    try:
        owner, attribute = resolve(module, target)
    except TargetError:
        return False
    return patch.name in names_in(getattr(owner, "__dict__", {}).get(attribute))


def check_is_original(module: ModuleType, target: Target, raw: Any, compare: bool) -> None:
    """Check that the attribute is the function that the module's source defines. Known decorators are allowed.

    Args:
        module: the upstream module.
        target: the target in it.
        raw: the value of the attribute.
        compare: also compare the bytecode with the source on disk, for a module that was executed before activation.

    Raises:
        ReplacedError: it is another object.
    """
    name = target.attribute.rpartition(".")[2]
    function: Any = None
    for function in unwrapped(raw):
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
        f"other code has already replaced {target.location}: {what}{where}; to get the patch, remove that code, or let "
        "it run after `import lightning_patches`"
    )


def _compiled(module: ModuleType, attribute: str) -> list[CodeType]:
    """Compile the source on disk, and return the code objects of all definitions of a function."""
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
    """True if two constants or code objects are equal. ``==`` is not used, since tracing tools change code objects."""
    if type(one) is not type(other):
        return False
    if isinstance(one, frozenset):  # a .pyc file may have another order than the code that Python has just compiled
        return sorted(map(repr, one)) == sorted(map(repr, other))
    if not isinstance(one, CodeType):
        return repr(one) == repr(other)
    return (
        (one.co_code, one.co_names, one.co_varnames, one.co_firstlineno)
        == (other.co_code, other.co_names, other.co_varnames, other.co_firstlineno)
        and len(one.co_consts) == len(other.co_consts)
        and all(map(_same, one.co_consts, other.co_consts))
    )


def why_not_patchable(patched: PatchedAttribute, target: Target) -> Optional[str]:
    """Return the reason why a target cannot be patched, or ``None``."""
    if (patched.original is MISSING) != target.adds:
        problem = "does not exist" if patched.original is MISSING else "already exists"
        return f"{target.location} {problem}"
    function = function_of(patched.original)
    if patched.original is not MISSING and (not callable(function) or isinstance(function, type)):
        return f"{target.location} is not a function: it is of type {type(patched.original).__name__}"
    return None
