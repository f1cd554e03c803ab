"""Replace targets by patched functions, and restore the originals.

The caller of a method that changes something holds the patcher's lock. So nothing is imported here, and no other thread
is waited for. :mod:`lightning_patches.engine.attributes` has the state of each target.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Iterable, Iterator, Optional

from lightning_patches.engine import attributes, functions, gate, hooks, references
from lightning_patches.engine.attributes import Slot
from lightning_patches.engine.functions import MISSING
from lightning_patches.engine.plan import Plan, Stage
from lightning_patches.errors import TargetError
from lightning_patches.patch import Patch, Target


class Swaps:
    """The patched attributes of all namespaces.

    Args:
        catalogue: the patches, in the order in which they are layered.
    """

    def __init__(self, catalogue: Iterable[Patch]) -> None:
        self._place = {patch.name: place for place, patch in enumerate(catalogue)}
        self._slots: dict[tuple[int, str], Slot] = {}

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots.values())

    def apply(self, plan: Plan, module: ModuleType, stage: Stage) -> dict[str, str]:
        """Replace the targets of a module. If one target of a patch fails, no target of it stays replaced.

        Returns:
            The reasons of the patches that failed, by name.
        """
        failures: dict[str, str] = {}
        if stage == "after":
            self._forget_executed(module)
        elif stage == "late" and hooks.is_being_imported(module):
            stage = "before"  # the thread that imports it does the rest
        for patch, target in plan.pending(module.__name__, stage):
            if attributes.is_left_out(module, target):
                continue
            try:
                self._swap(plan, patch, target, module, stage)
            except BaseException as error:
                self._withdraw(patch, plan.namespace.name)
                if not isinstance(error, Exception):
                    raise  # after an interruption the patch is still pending
                failures[patch.name] = plan.fail(patch, error)
        if stage == "after":
            here = [slot for slot in self if slot.owner is module]
            references.follow(here, functools.partial(references.modules_behind, module))
        return failures

    def _swap(self, plan: Plan, patch: Patch, target: Target, module: ModuleType, stage: Stage) -> None:
        """Replace a target by the patched function.

        Raises:
            TargetError: the target cannot be patched.
            Exception: any error of the patch's builder.
        """
        owner, attribute = attributes.resolve(module, target)
        slot = self._slots.get((id(owner), attribute))
        if slot is None or slot.is_taken:
            slot = Slot(owner, attribute, plan.namespace.name, stage == "late")
        if slot.has(patch):
            return  # it is already applied
        if (slot.standing is not slot.current or not slot.made) and patch.name in functions.names_in(slot.standing):
            return  # another copy of this package has applied it, or other code wraps our function
        if not slot.made:
            self._check(slot, plan, patch, target, module, stage)
        slot.layers.append(patch.with_code(target))
        slot.layers.sort(key=lambda layer: self._place[layer[0].name])
        self._slots[id(owner), attribute] = slot
        if not slot.compose():
            raise TargetError(f"{target.location} was replaced by other code after it was patched")

    def _check(self, slot: Slot, plan: Plan, patch: Patch, target: Target, module: ModuleType, stage: Stage) -> None:
        """Check that the attribute is a known affected function.

        Raises:
            TargetError: it is not.
        """
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

    def _withdraw(self, patch: Patch, namespace: str) -> None:
        """Remove one patch from all targets in a namespace."""
        for slot in self:
            if slot.namespace == namespace:
                slot.layers = [layer for layer in slot.layers if layer[0].name != patch.name]
        self._restore()

    def keep(self, names: frozenset[str]) -> list[str]:
        """Remove all patches but these, and return the attributes that could not be restored."""
        for slot in self:
            slot.layers = [layer for layer in slot.layers if layer[0].name in names]
        return self._restore()

    def _restore(self) -> list[str]:
        left = [slot.name for slot in self if slot.is_stale and not slot.compose()]
        self.follow()
        for key, slot in list(self._slots.items()):
            # Keep a slot that other code has replaced: when that code restores it, our function is there again.
            if not slot.layers and slot.standing is slot.original:
                del self._slots[key]
        return left

    def _forget_executed(self, module: ModuleType) -> None:
        """Forget the attributes of a module that was executed once more in the same module object."""
        for key, slot in list(self._slots.items()):
            if slot.owner is module and slot.standing is not slot.current:
                del self._slots[key]

    def follow(self) -> None:
        """Update copies of replaced functions in all modules."""
        references.follow(self, references.all_modules)

    def was_applied(self, patch: Patch, module: ModuleType, target: Target) -> bool:
        """True if a patch was applied to a target, whatever the attribute is now."""
        slot = self._find(module, target)
        return slot is not None and slot.has(patch)

    def wrapper_around(self, module: ModuleType, target: Target) -> str:
        """Return the location of other code that wraps our function in a target, or ""."""
        slot = self._find(module, target)
        if slot is None or not slot.made or slot.standing is slot.current:
            return ""
        function = functions.function_of(slot.standing)
        code = getattr(function, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else f"a {type(function).__name__}"

    def _find(self, module: ModuleType, target: Target) -> Optional[Slot]:
        try:
            owner, attribute = attributes.resolve(module, target)
        except TargetError:
            return None
        return self._slots.get((id(owner), attribute))

    def originals(self) -> dict[int, tuple[Any, Slot]]:
        """Return originals that other code may have copied before they were replaced, with their slots, by ``id``."""
        late = [slot for slot in list(self) if slot.late and slot.layers]
        found = ((functions.function_of(slot.original), slot) for slot in late if slot.original is not MISSING)
        return {id(function): (function, slot) for function, slot in found}
