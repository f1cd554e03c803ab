"""Apply, verify and undo patches.

Each namespace has one :class:`Plan`: the selected patches that the gate accepts, and the targets of each module. It is
created before the first module of the namespace is loaded, or at once if one is loaded. A plan is built completely
before it is set, so an interruption leaves either all of it or nothing.

wrapt's post-import hooks replace the targets. wrapt drops a hook after the call, so our loader registers it again after
each execution of a module: also for ``importlib.reload``, for an import after the module was removed from
``sys.modules``, and for the second attempt of a failed import. :mod:`lightning_patches.engine.attributes` has the state
of each target.

While the lock is held, nothing is imported, and no other thread is waited for.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import traceback
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Iterable, Literal, Optional

import wrapt

from lightning_patches import notices, system
from lightning_patches.engine import attributes, distributions, functions, gate, hooks, references
from lightning_patches.engine.attributes import Slot
from lightning_patches.engine.functions import MISSING
from lightning_patches.engine.gate import Decision
from lightning_patches.engine.toggle import Selection
from lightning_patches.errors import PatchError, TargetError
from lightning_patches.patch import Patch, Target

Stage = Literal["before", "after", "late"]


class Plan:
    """The plan for one namespace.

    Args:
        namespace: the installed namespace.
        selection: the selected patches.
    """

    def __init__(self, namespace: distributions.Namespace, selection: Selection) -> None:
        self.namespace = namespace
        self.selection = selection
        self.decisions: dict[str, Decision] = {}
        """By the name of each wanted patch. ``pending`` is the go-ahead; a failure is written here."""
        self.targets: dict[str, list[tuple[Patch, Target]]] = {}
        """Of the pending ones, by the module's name, in the order in which patches are layered."""

    def add(self, patch: Patch) -> None:
        try:
            decision = gate.decide(patch, self.namespace)
        except Exception as error:
            decision = Decision("failed", f"{type(error).__name__}: {error}")
        self.decisions[patch.name] = decision
        if decision.verdict == "pending":
            for target in gate.targets_in(patch, self.namespace):
                module = distributions.module_name(self.namespace.name, target.module)
                self.targets.setdefault(module, []).append((patch, target))

    def refusals(self) -> dict[str, str]:
        """Why wanted patches are not applied, by their names."""
        return {name: made.reason for name, made in self.decisions.items() if made.verdict in gate.REFUSED}


class Patcher:
    """Applies a catalogue's patches to whatever Lightning gets imported, and takes them back.

    Args:
        catalogue: the patches, in the order in which they are layered.
    """

    def __init__(self, catalogue: Iterable[Patch]) -> None:
        self.catalogue = tuple(catalogue)
        self._place = {patch.name: place for place, patch in enumerate(self.catalogue)}
        self.selection: Optional[Selection] = None
        self._plans: dict[str, Plan] = {}
        self._slots: dict[tuple[int, str], Slot] = {}
        self._told: set[str] = set()
        self._to_take_back: dict[int, Any] = {}
        """Functions of a :meth:`deactivate` that is not finished, by their ``id``."""
        self._renew_lock()
        system.after_fork(self._renew_lock)  # a thread that holds it does not live on in the child

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()

    @property
    def active(self) -> bool:
        return self.selection is not None

    def activate(self, selection: Selection, on_behalf_of: Optional[Callable[[], Any]] = None) -> None:
        """Apply ``selection`` to modules that are imported later, and to those that are already imported.

        Args:
            selection: the selected patches.
            on_behalf_of: for the loader of a module: act only if this is still the argument of the last
                :func:`lightning_patches.engine.hooks.install`. A thread that imports Lightning must not activate
                patches that another thread has deactivated since.

        Raises:
            PatchError: under ``strict``, if a selected patch cannot be applied to an imported module.
        """
        with self._lock:
            if on_behalf_of is not None and hooks.installed() is not on_behalf_of:
                return
            self.selection = selection
            notices.strict, notices.quiet = selection.strict, selection.quiet
            hooks.install(self._itself, self.concerns)
            self._keep(selection.names)
        if on_behalf_of is None:
            # Not during an import of Lightning: the other thread may need a lock that this one holds. It is not needed
            # either, since all modules imported after the finder was installed used our loader.
            hooks.wait_for_imports()
        refused: Optional[PatchError] = None
        for name in distributions.PARTS:
            plan = self._plan(name) if _is_imported(name) else None
            for module in list(plan.targets) if plan is not None else ():
                if plan is None or sys.modules.get(module) is None:
                    continue
                try:
                    _load(plan, module)
                    self._look_up_needs(plan, module)
                    _call_after_import(module, functools.partial(self._patch, stage="late"))
                except PatchError as error:
                    refused = refused or error
            if plan is not None and refused is None:
                refused = self._refusal(plan)
        with self._lock:
            references.follow(self._slots.values(), references.all_modules)
        if refused is not None:
            raise refused

    def deactivate(self) -> list[str]:
        """Restore every original. After an interruption, another call does the rest.

        Returns:
            The attributes that could not be restored, since other code has replaced or wrapped our function, and places
            that still reference our functions.
        """
        with self._lock:
            hooks.remove()
            made = (function for slot in self._slots.values() for function in slot.made)
            self._to_take_back.update({id(function): function for function in made})
            left = self._keep(frozenset())
            self._plans.clear()
            self._told.clear()
            self.selection = None
            notices.strict = notices.quiet = False
        held = [place for places in references.find(self._to_take_back).values() for place in places]
        self._to_take_back = {}
        return [*left, *(place for place in held if place not in left)]

    # ---------------------------------------------------------------- what verdicts are made of

    def decision(self, patch: Patch, namespace: distributions.Namespace) -> Decision:
        """Return the decision on a patch; ``pending`` means that it can be applied."""
        plan = self._plans.get(namespace.name)
        made = plan.decisions.get(patch.name) if plan is not None else None
        return made if made is not None else gate.decide(patch, namespace)

    def was_here(self, patch: Patch, module: ModuleType, target: Target) -> bool:
        """True if a patch was applied to a target, whatever the attribute is now."""
        slot = self._slot_of(module, target)
        return slot is not None and slot.has(patch)

    def wrapper_around(self, module: ModuleType, target: Target) -> str:
        """Return the location of other code that wraps our function in a target; "" if there is none."""
        slot = self._slot_of(module, target)
        if slot is None or not slot.made or slot.standing is slot.current:
            return ""
        function = functions.function_of(slot.standing)
        code = getattr(function, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else f"a {type(function).__name__}"

    def _slot_of(self, module: ModuleType, target: Target) -> Optional[Slot]:
        try:
            owner, attribute = attributes.resolve(module, target)
        except TargetError:
            return None
        return self._slots.get((id(owner), attribute))

    def originals(self) -> dict[int, tuple[Any, Slot]]:
        """Return originals that other code may have copied before they were replaced, with their slots, by ``id``."""
        with self._lock:
            late = [slot for slot in self._slots.values() if slot.late and slot.layers]
        found = ((functions.function_of(slot.original), slot) for slot in late if slot.original is not MISSING)
        return {id(function): (function, slot) for function, slot in found}

    # ---------------------------------------------------------------- on import

    def _itself(self) -> Patcher:
        return self

    def concerns(self, name: str, spec: Optional[ModuleSpec] = None) -> bool:
        """True if a module of Lightning needs work; see :class:`hooks.Concerns`."""
        selection = self.selection
        if selection is None or not selection.names:
            return False
        try:
            namespace = _namespace_of(name)
            plan = self._plans.get(namespace) if spec is None else self._plan(namespace, spec)
        except Exception as error:
            self._report(name, error)
            return False
        if plan is None or plan.selection is not selection:
            return spec is None
        return name in plan.targets or (selection.strict and name in distributions.ROOT_PACKAGES)

    def before(self, module: ModuleType) -> None:
        """A module of Lightning is about to be executed.

        Raises:
            PatchError: under ``strict``, if a wanted patch cannot be applied.
        """
        try:
            plan = self._plan(_namespace_of(module.__name__))
            if plan is None:
                return
            if any(target.early for _, target in plan.targets.get(module.__name__, ())):
                _load(plan, module.__name__)
                self._patch(module, stage="before")
            refused = self._refusal(plan) if module.__name__ in distributions.ROOT_PACKAGES else None
            if refused is not None:
                raise refused
        except Exception as error:
            self._report(module.__name__, error)

    def after(self, module: ModuleType) -> None:
        """A module of Lightning has been executed.

        Raises:
            PatchError: under ``strict``, if a wanted patch is not applied.
        """
        try:
            plan = self._plan(_namespace_of(module.__name__))
            if plan is not None and module.__name__ in plan.targets:
                _load(plan, module.__name__)
                self._look_up_needs(plan, module.__name__)
                _call_after_import(module.__name__, functools.partial(self._patch, stage="after"))
        except Exception as error:
            self._report(module.__name__, error)

    def _report(self, module: str, error: Exception) -> None:
        """Report an internal error without raising it in the user's import."""
        if isinstance(error, PatchError):
            raise error  # only under strict: the user asked for it
        if notices.strict:
            raise PatchError(f"{module} is not patched: {type(error).__name__}: {error}") from error
        trace = traceback.format_exc()
        if trace not in self._told:
            self._told.add(trace)
            told = f"internal error while patching {module}; it is left as it is. Please report this:"
            notices.notice(told, urgent=True, details=trace)

    def _plan(self, name: str, importing: Optional[ModuleSpec] = None) -> Optional[Plan]:
        """Return the plan for a namespace, and create it if needed; ``None`` if nothing is selected or installed.

        Args:
            name: name of the namespace.
            importing: its module that is about to be imported.
        """
        while True:
            selection, old = self.selection, self._plans.get(name)
            if selection is None:
                return None
            if old is not None and old.selection is selection:
                return old
            namespace = distributions.find(name, importing)
            if namespace is None:
                return None
            made = Plan(namespace, selection)
            for patch in self.catalogue:
                if patch.name in selection.names:
                    made.add(patch)
            with self._lock:
                in_place = self.selection is selection and self._plans.get(name) is old
                if in_place:
                    self._plans[name] = made
            if in_place:
                self._announce(made, old)

    def _look_up_needs(self, plan: Plan, module: str) -> None:
        """Check the needs of patches after Lightning has imported torch."""
        for patch in {patch.name: patch for patch, _ in plan.targets[module] if patch.needs}.values():
            lacking = gate.what_lacks(patch, imports=True)
            if lacking and plan.decisions[patch.name].verdict == "pending":
                plan.decisions[patch.name] = Decision("not-supported", lacking)
                self._tell({patch.name: lacking})

    def _patch(self, module: ModuleType, stage: Stage) -> None:
        """Replace the targets of a module.

        Args:
            module: a module of Lightning.
            stage: before its execution, right after it, or later.

        Raises:
            PatchError: under ``strict``, if a selected patch is not applied.
        """
        failures: dict[str, str] = {}
        with self._lock:
            plan = self._plans.get(_namespace_of(module.__name__))
            if plan is None or self.selection is None:
                return
            if stage == "after":
                for key, slot in list(self._slots.items()):
                    if slot.owner is module and slot.standing is not slot.current:
                        del self._slots[key]  # executed once more, in the same module object
            elif stage == "late" and hooks.is_being_imported(module):
                stage = "before"  # the rest is for the thread that imports it
            for patch, target in plan.targets.get(module.__name__, ()):
                if plan.decisions[patch.name].verdict != "pending":
                    continue
                if stage != "late" and target.early != (stage == "before"):
                    continue
                if attributes.is_left_out(module, target):
                    continue
                try:
                    self._swap(plan, patch, target, module, stage)
                except BaseException as error:
                    self._withdraw(patch, plan.namespace.name)
                    if not isinstance(error, Exception):
                        raise  # an interruption: nothing is decided
                    verdict: gate.Verdict = "drifted" if isinstance(error, attributes.ReplacedError) else "failed"
                    reason = str(error) if verdict == "drifted" else f"{type(error).__name__}: {error}"
                    plan.decisions[patch.name] = Decision(verdict, reason)
                    failures[patch.name] = reason
            if stage == "after":
                here = [slot for slot in self._slots.values() if slot.owner is module]
                references.follow(here, functools.partial(references.modules_behind, module))
            refused = self._refusal(plan)
        self._tell(failures)
        if refused is not None:
            raise refused

    # ---------------------------------------------------------------- swap

    def _swap(self, plan: Plan, patch: Patch, target: Target, module: ModuleType, stage: Stage) -> None:
        owner, attribute = attributes.resolve(module, target)
        slot = self._slots.get((id(owner), attribute))
        if slot is None or slot.is_taken:
            slot = Slot(owner, attribute, plan.namespace.name, stage == "late")
        if slot.has(patch):
            return  # twice is once
        if (slot.standing is not slot.current or not slot.made) and patch.name in functions.names_in(slot.standing):
            return  # another copy of this package was first, or other code wraps our function
        if not slot.made:
            wrong = attributes.what_is_wrong_with(slot, target)
            if wrong is not None:
                raise TargetError(wrong)
            part = plan.namespace.part_of(target.location)
            assert part is not None
            decision = gate.decide_source(patch, {target.location: part})
            if decision.verdict != "pending":
                raise attributes.ReplacedError(f"{decision.reason}; the file has changed {attributes.SINCE}")
            if slot.original is not MISSING and not slot.is_ours:
                attributes.check_shipped(module, target, slot.original, compare=stage == "late")
        slot.layers.append(patch.with_code(target))
        slot.layers.sort(key=lambda layer: self._place[layer[0].name])
        self._slots[id(owner), attribute] = slot
        if not slot.compose():
            raise TargetError(f"{target.location} was replaced by other code after it was patched")

    def _withdraw(self, patch: Patch, namespace: str) -> None:
        """Take one patch out of all its slots: all or nothing."""
        for slot in self._slots.values():
            if slot.namespace == namespace:
                slot.layers = [layer for layer in slot.layers if layer[0].name != patch.name]
        self._restore()

    def _keep(self, names: frozenset[str]) -> list[str]:
        """Take all patches but these out of their slots, and name the slots in which that could not be done."""
        for slot in self._slots.values():
            slot.layers = [layer for layer in slot.layers if layer[0].name in names]
        return self._restore()

    def _restore(self) -> list[str]:
        left = []
        for slot in self._slots.values():
            if slot.is_stale and not slot.compose():
                left.append(slot.name)
        references.follow(self._slots.values(), references.all_modules)
        for key, slot in list(self._slots.items()):
            if not slot.layers and slot.standing is slot.original:
                del self._slots[key]  # where others stand, ours may come back when they leave: that is remembered
        return left

    # ---------------------------------------------------------------- tell

    def _announce(self, plan: Plan, old: Optional[Plan]) -> None:
        """Print the number of fixes, unless the previous plan had the same number."""
        count, before = (self._count(each) if each is not None else 0 for each in (plan, old))
        if count != before:
            part = next(iter(plan.namespace.parts.values()))
            what = f"{count or 'no'} {'fix' if count == 1 else 'fixes'} ('lightning-patches status' lists them)"
            notices.notice(f"{part.distribution} {part.version}: {what}")
        self._tell(plan.refusals())

    def _count(self, plan: Plan) -> int:
        pending = {name for name, decision in plan.decisions.items() if decision.verdict == "pending"}
        return sum(patch.is_counted for patch in self.catalogue if patch.name in pending)

    def _tell(self, refusals: dict[str, str]) -> None:
        """One line for each reason why patches are not applied, once."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in refusals.items():
            by_reason.setdefault(reason, []).append(name)
        for reason, names in by_reason.items():
            who = f"{names[0]} is" if len(names) == 1 else f"{len(names)} patches are"
            line = f"{who} not applied: {reason}"
            if line not in self._told and not notices.strict:  # which raises instead
                self._told.add(line)
                notices.notice(line)

    def _refusal(self, plan: Plan) -> Optional[PatchError]:
        """Return the error of ``strict``, also for earlier refusals, so that a second import fails, too."""
        for name, reason in plan.refusals().items() if notices.strict else ():
            return PatchError(
                f"{name} is not applied: {reason}. (Without 'strict' the program goes on without this patch.)"
            )
        return None


def _load(plan: Plan, module: str) -> None:
    """Import the patches of a module, which is done before the lock is taken."""
    targets = plan.targets[module]
    for place, (patch, target) in enumerate(targets):
        with contextlib.suppress(Exception):  # raised again and reported when the patch is applied
            targets[place] = patch.with_code(target)


def _call_after_import(module_name: str, hook: Callable[[ModuleType], None]) -> None:
    """Make wrapt call ``hook(module)`` at once for an imported module.

    wrapt below 1.15 holds its own lock during the call, and its finder waits for this lock while it holds Python's. So
    the hook must not import modules that are not loaded yet, and the caller must not hold a lock that the hook needs.
    """
    wrapt.register_post_import_hook(hook, module_name)


def _namespace_of(module: str) -> str:
    return "lightning" if module.partition(".")[0] == "lightning" else "pytorch_lightning"


def _is_imported(namespace: str) -> bool:
    return any(package.partition(".")[0] in sys.modules for package in distributions.PARTS[namespace].values())
