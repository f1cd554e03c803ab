"""Gate, swap, verify, restore.

State is kept per *slot*: one attribute of one class or module, with the object that stood there and the stack of
patches on top of it. What stands in a slot is always composed anew from the original, so that patches which share a
target can come and go in any order.
"""

from __future__ import annotations

import inspect
import sys
import threading
from types import FunctionType, ModuleType
from typing import Any, Iterable, Optional

from lightning_patches import _runtime, distributions, gate, hooks
from lightning_patches.errors import PatchError, TargetError
from lightning_patches.gate import Decision
from lightning_patches.patch import Patch, Target
from lightning_patches.toggle import Selection

MISSING: Any = object()
NAMES = "__lightning_patches__"
"""On a replacement: names of the patches in it, innermost first."""
ORIGINAL = "__lightning_patches_original__"
"""On a replacement: the function that stood there before. Not ``__wrapped__``: Lightning's ``is_overridden`` looks
through that one on one side of its comparison only, and would take every patched base method for an override."""


class _Slot:
    def __init__(self, owner: Any, attribute: str, original: Any) -> None:
        self.owner = owner
        self.attribute = attribute
        self.original = original
        self.layers: list[tuple[Patch, Target]] = []
        self.current = original


class _State:
    """One patch in one namespace."""

    def __init__(self, patch: Patch, decision: Decision) -> None:
        self.patch = patch
        self.decision = decision
        self.modules: dict[str, list[Target]] = {}
        self.slots: dict[str, _Slot] = {}


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


class Patcher:
    """Applies a catalogue's patches to whatever Lightning gets imported, and takes them back.

    Args:
        catalogue: the patches, in the order in which they are layered.
    """

    def __init__(self, catalogue: Iterable[Patch]) -> None:
        self.catalogue = tuple(catalogue)
        self.selection: Optional[Selection] = None
        self._states: dict[tuple[str, str], _State] = {}
        self._namespaces: dict[str, distributions.Namespace] = {}
        self._planned: dict[str, Selection] = {}
        self._in_order: dict[str, list[_State]] = {}
        self._slots: dict[tuple[int, str], _Slot] = {}
        self._lock = threading.RLock()

    @property
    def active(self) -> bool:
        return self.selection is not None

    def activate(self, selection: Selection) -> None:
        """Make ``selection`` what is applied: to modules imported later, and to those that are here already.

        Raises:
            PatchError: under ``strict``, when a wanted patch cannot be applied to an imported module.
        """
        with self._lock:
            if self.selection is not None and self.selection.names - selection.names:
                self.deactivate()
            self.selection = selection
            _runtime.strict, _runtime.quiet = selection.strict, selection.quiet
            wanted = [patch for patch in self.catalogue if patch.name in selection.names]
        hooks.wait_for_imports(distributions.ROOT_PACKAGES)
        refused: Optional[PatchError] = None
        for namespace in distributions.PARTS:
            modules = {(target.module, target.early) for patch in wanted for target in patch.targets}
            for module, early in sorted(modules):
                watch = hooks.watch_before if early else hooks.watch
                try:
                    watch(distributions.module_name(namespace, module), self._importer(namespace, module, early))
                except PatchError as error:
                    refused = refused or error
        if refused is not None:
            raise refused

    def deactivate(self) -> list[str]:
        """Put every original back into its slot.

        Returns:
            The slots that could not be restored because something else replaced or wrapped our function since.
        """
        left = []
        with self._lock:
            hooks.unwatch_all()
            for slot in self._slots.values():
                slot.layers.clear()
                if not _compose(slot):
                    left.append(f"{_name(slot.owner)}.{slot.attribute}")
            self._slots.clear()
            self._states.clear()
            self._namespaces.clear()
            self._planned.clear()
            self._in_order.clear()
            self.selection = None
            _runtime.strict = _runtime.quiet = False
        return left

    def verdict(
        self, patch: Patch, namespace: distributions.Namespace, outlook: Optional[Selection] = None
    ) -> Decision:
        """The present state of a patch in a namespace, asked of the live objects.

        Args:
            patch: one of the catalogue.
            namespace: as it is installed.
            outlook: what will be activated when Lightning is imported, where nothing is active yet.
        """
        selection = self.selection or outlook
        decision = gate.decide(patch, namespace)
        state = self._states.get((namespace.name, patch.name))
        if state is not None and state.decision.verdict != "pending":
            return state.decision
        if decision.verdict != "pending":
            return decision
        if selection is not None and patch.name not in selection.names:
            return Decision("disabled", f"not selected by {selection.spec or 'the default set'}")
        waiting, here = [], 0
        for target in gate.targets_in(patch, namespace):
            module = sys.modules.get(distributions.module_name(namespace.name, target.module))
            if module is None:
                waiting.append(target.module)
                continue
            found = _find(module, target.attribute)
            if found is not None and patch.name in _names_in(found):
                here += 1
            elif self.selection is None:
                return Decision("disabled", "not activated in this process")
            else:
                return Decision("failed", f"something replaced {target.location} after it was patched")
        if waiting:
            suffix = f"; {here} of {here + len(waiting)} targets are patched" if here else ""
            suffix += "; acts only if a probe finds the bug in torch" if patch.probe is not None else ""
            return Decision("pending", f"applies when {', '.join(sorted(set(waiting)))} is imported{suffix}")
        if patch.probe is not None and not patch.probe():
            return Decision("not-affected", "not needed: a probe finds that this torch does not have the bug")
        return Decision("applied", "in place")

    # ---------------------------------------------------------------- on import

    def _importer(self, namespace: str, module: str, early: bool) -> hooks.Callback:
        def on_import(imported: ModuleType, reloaded: bool) -> None:
            with self._lock:
                self._on_import(namespace, module, imported, reloaded, early)

        return on_import

    def _on_import(self, namespace: str, module: str, imported: ModuleType, reloaded: bool, early: bool) -> None:
        if self.selection is None:
            return
        self._plan(namespace)
        states = self._in_order.get(namespace, [])
        for state in states:
            if state.decision.verdict != "pending":
                continue
            try:
                for target in state.modules.get(module, ()):
                    if target.early == early:
                        self._add_layer(state, target, imported, namespace, reloaded)
            except Exception as error:
                self._withdraw(state, namespace)
                state.decision = Decision("failed", f"{type(error).__name__}: {error}")
                _tell_refusal(state)
        if _runtime.strict:
            for state in states:  # those of earlier imports, too: a second try must not go through
                if state.decision.verdict in ("drifted", "failed"):
                    raise PatchError(f"{_refusal(state)}. (Without 'strict' the program goes on without this patch.)")

    def _plan(self, name: str) -> None:
        """Gate the wanted patches of a namespace, each once, when the first module of interest arrives."""
        assert self.selection is not None
        if self._planned.get(name) is self.selection:
            return
        new = [p for p in self.catalogue if p.name in self.selection.names and (name, p.name) not in self._states]
        namespace = self._namespaces.get(name) or (distributions.find(name) if new else None)
        if namespace is None:
            return
        self._planned[name], self._namespaces[name] = self.selection, namespace
        planned = []
        for patch in new:
            state = self._states[name, patch.name] = _State(patch, gate.decide(patch, namespace))
            planned.append(state)
            if state.decision.verdict == "pending":
                for target in gate.targets_in(patch, namespace):
                    state.modules.setdefault(target.module, []).append(target)
        known = [self._states.get((name, patch.name)) for patch in self.catalogue]
        self._in_order[name] = [state for state in known if state is not None]
        _announce(namespace, sum(s.decision.verdict == "pending" and not s.patch.warns_of for s in planned))
        for state in planned:
            if state.decision.verdict == "drifted":
                _tell_refusal(state)

    # ---------------------------------------------------------------- swap

    def _add_layer(self, state: _State, target: Target, module: ModuleType, namespace: str, reloaded: bool) -> None:
        owner, attribute = _resolve(module, target)
        key = (id(owner), attribute)
        raw = owner.__dict__.get(attribute, MISSING)
        slot = self._slots.get(key)
        if slot is None or slot.owner is not owner:
            if raw is not MISSING and state.patch.name in _names_in(raw):
                return  # another copy of this package was here first
            slot = self._slots[key] = _Slot(owner, attribute, raw)
        elif reloaded and raw is not slot.current:
            slot.original = slot.current = raw  # the module ran again
            slot.layers = []
        if any(patch.name == state.patch.name for patch, _ in slot.layers):
            return  # twice is once
        if (slot.original is MISSING) != target.adds and not slot.layers:
            raise TargetError(f"{target.location} is {'missing' if slot.original is MISSING else 'there already'}")
        function = _function_of(slot.original)
        if slot.original is not MISSING and (not callable(function) or isinstance(function, type)):
            raise TargetError(f"{target.location} is no function but {type(slot.original).__name__}")
        slot.layers.append((state.patch, target))
        slot.layers.sort(key=lambda layer: self.catalogue.index(layer[0]))
        state.slots[target.location] = slot
        if not _compose(slot, namespace):
            raise TargetError(f"{target.location} was replaced by other code after it was patched")

    def _withdraw(self, state: _State, namespace: str) -> None:
        for slot in state.slots.values():
            slot.layers = [layer for layer in slot.layers if layer[0] is not state.patch]
            _compose(slot, namespace)
        state.slots.clear()


def _announce(namespace: distributions.Namespace, count: int) -> None:
    if count:
        part = next(iter(namespace.parts.values()))
        plural = "fix" if count == 1 else "fixes"
        _runtime.notice(f"{part.distribution} {part.version}: {count} {plural} ('lightning-patches status' lists them)")


def _tell_refusal(state: _State) -> None:
    if not _runtime.strict:  # which raises instead
        _runtime.notice(_refusal(state))


def _refusal(state: _State) -> str:
    return f"{state.patch.name} is not applied: {state.decision.reason}"


def _compose(slot: _Slot, namespace: str = "") -> bool:
    """Put into the slot what its layers make of the original. False if somebody else's object stands there."""
    standing = slot.owner.__dict__.get(slot.attribute, MISSING)
    if standing is not slot.current:
        return standing is slot.original and not slot.layers
    wanted = slot.original
    if slot.layers:
        function = _function_of(slot.original) if slot.original is not MISSING else None
        names: tuple[str, ...] = ()
        for patch, target in slot.layers:
            names += (patch.name,)
            replacement = target.build(function, namespace)
            if not isinstance(replacement, FunctionType) or replacement is function:
                raise TypeError(f"{patch.name} built no function of its own for {target.location}")
            function = _dress(replacement, slot, names)
        wanted = _like(slot.original, function)
    if wanted is MISSING:
        if standing is not MISSING:
            delattr(slot.owner, slot.attribute)
    elif wanted is not standing:
        setattr(slot.owner, slot.attribute, wanted)
    if isinstance(slot.owner, ModuleType) and standing is not MISSING:
        _swap_aliases(slot, standing, wanted)
    slot.current = wanted
    return True


def _dress(replacement: Any, slot: _Slot, names: tuple[str, ...]) -> Any:
    """Make a replacement look like what it replaces, so that pickle, help() and signature() go on as before."""
    owner = slot.owner
    original = _function_of(slot.original) if slot.original is not MISSING else None
    if original is not None:
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(replacement, attribute, getattr(original, attribute))
        replacement.__annotations__ = dict(getattr(original, "__annotations__", {}))
        replacement.__signature__ = _Signature(original)
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


def _swap_aliases(slot: _Slot, old: Any, new: Any) -> None:
    """Follow ``from x import f``: every other module of Lightning's, and the user's script, that holds the object.

    While the module is being imported only those that it imports in turn can have got hold of it: they stand behind it
    in ``sys.modules``.
    """
    roots = {*distributions.ROOT_PACKAGES, "__main__"}
    being_imported = getattr(slot.owner.__spec__, "_initializing", False)
    for name in reversed(list(sys.modules)):
        module = sys.modules.get(name)
        if module is slot.owner:
            if being_imported:
                break
            continue
        if name.partition(".")[0] not in roots or not isinstance(module, ModuleType):
            continue
        for attribute, value in list(vars(module).items()):
            if value is old:
                setattr(module, attribute, new)


def _resolve(module: ModuleType, target: Target) -> tuple[Any, str]:
    *path, attribute = target.attribute.split(".")
    owner: Any = module
    for name in path:
        owner = owner.__dict__.get(name)
        if owner is None:
            raise TargetError(f"{target.location}: {module.__name__} has no {name}")
    return owner, attribute


def _find(module: ModuleType, attribute: str) -> Any:
    found: Any = module
    for name in attribute.split("."):
        found = getattr(found, "__dict__", {}).get(name)
        if found is None:
            return None
    return found


def _function_of(raw: Any) -> Any:
    if isinstance(raw, (staticmethod, classmethod)):
        return raw.__func__
    if isinstance(raw, property):
        return raw.fget
    return raw


def _like(raw: Any, function: Any) -> Any:
    """The function in the same kind of descriptor."""
    if isinstance(raw, (staticmethod, classmethod)):
        return type(raw)(function)
    if isinstance(raw, property):
        return property(function, raw.fset, raw.fdel, raw.__doc__)
    return function


def _names_in(raw: Any) -> tuple[str, ...]:
    """Names of the patches in a function, looked for through whatever others wrapped around it."""
    function = _function_of(raw)
    seen = 0
    while function is not None and seen < 32:
        names = getattr(function, "__dict__", {}).get(NAMES)
        if names:
            return tuple(names)
        function, seen = getattr(function, "__wrapped__", None), seen + 1
    return ()


def _name(owner: Any) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
