"""Replace targets by patched functions, and restore the originals.

The caller of a method that changes something must hold the patcher's lock. So the methods must not import modules or
wait for other threads. :mod:`lightning_patches.engine.attributes` has the state of each target.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Iterable, Iterator, Optional

from lightning_patches.engine import attributes, functions, gate, hooks, references
from lightning_patches.engine.attributes import PatchedAttribute
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
        self._order = {patch.name: place for place, patch in enumerate(catalogue)}
        self._patched: dict[tuple[int, str], PatchedAttribute] = {}

    def __iter__(self) -> Iterator[PatchedAttribute]:
        return iter(self._patched.values())

    def apply(self, plan: Plan, module: ModuleType, stage: Stage) -> dict[str, str]:
        """Replace the targets of a module. If one target of a patch fails, all its targets are restored.

        Returns:
            The reasons why patches failed, by name.
        """
        failures: dict[str, str] = {}
        if stage == "after":
            self._forget_executed(module)
        elif stage == "late" and hooks.is_being_imported(module):
            stage = "before"  # the thread that is importing it replaces the other targets
        for patch, target in plan.pending(module.__name__, stage):
            if attributes.is_optional_and_missing(module, target):
                continue
            try:
                self._swap(plan, patch, target, module, stage)
            except BaseException as error:
                self._remove(patch, plan.namespace.name)
                if not isinstance(error, Exception):
                    raise  # after an interruption, the patch is still pending
                failures[patch.name] = plan.fail(patch, error)
        if stage == "after":
            here = [self._patched[key] for key in self._keys_in(module)]
            references.update_copies(here, functools.partial(references.modules_imported_by, module))
        return failures

    def _swap(self, plan: Plan, patch: Patch, target: Target, module: ModuleType, stage: Stage) -> None:
        """Replace a target by the patched function.

        Raises:
            TargetError: the target cannot be patched.
            Exception: any error of the patch's builder.
        """
        owner, attribute = attributes.resolve(module, target)
        patched = self._patched.get((id(owner), attribute))
        if patched is None or patched.is_taken:
            patched = PatchedAttribute(owner, attribute, plan.namespace.name, stage == "late")
        if patched.has(patch):
            return  # it is already applied
        if (patched.present is not patched.last_set or not patched.created) and patch.name in functions.names_in(
            patched.present
        ):
            return  # another copy of this package has applied the patch, or other code wraps our function
        if not patched.created:
            self._check(patched, plan, patch, target, module, stage)
        patched.layers.append(patch.with_code(target))
        patched.layers.sort(key=lambda layer: self._order[layer[0].name])
        self._patched[id(owner), attribute] = patched
        if not patched.compose():
            raise TargetError(f"{target.location} was replaced by other code after it was patched")

    def _check(
        self, patched: PatchedAttribute, plan: Plan, patch: Patch, target: Target, module: ModuleType, stage: Stage
    ) -> None:
        """Check that the attribute is a known affected function.

        Raises:
            TargetError: the attribute is another object.
        """
        wrong = attributes.why_not_patchable(patched, target)
        if wrong is not None:
            raise TargetError(wrong)
        if not plan.is_source_unchanged(target):
            part = plan.namespace.part_of(target.location)
            assert part is not None
            decision = gate.decide_source(patch, {target.location: part})
            if decision.verdict != "pending":
                raise attributes.ReplacedError(f"{decision.reason}; the file has changed {attributes.SINCE}")
        if patched.original is not MISSING and not patched.is_ours:
            attributes.check_is_original(module, target, patched.original, compare=stage == "late")

    def _remove(self, patch: Patch, namespace: str) -> None:
        """Remove one patch from all targets in a namespace."""
        for patched in self:
            if patched.namespace == namespace:
                patched.layers = [layer for layer in patched.layers if layer[0].name != patch.name]
        self._restore()

    def keep(self, names: frozenset[str]) -> list[str]:
        """Remove all patches but these, and return the attributes that could not be restored."""
        for patched in self:
            patched.layers = [layer for layer in patched.layers if layer[0].name in names]
        return self._restore()

    def _restore(self) -> list[str]:
        left = [patched.name for patched in self if patched.is_stale and not patched.compose()]
        self.update_copies()
        for key, patched in list(self._patched.items()):
            # Keep the state of an attribute that other code has replaced: if that code undoes its change, our function
            # is back.
            if not patched.layers and patched.present is patched.original:
                del self._patched[key]
        return left

    def _forget_executed(self, module: ModuleType) -> None:
        """Forget the attributes of a module that was executed again, as by ``importlib.reload``."""
        for key in self._keys_in(module):
            patched = self._patched[key]
            if patched.present is not patched.last_set:
                del self._patched[key]

    def _keys_in(self, module: ModuleType) -> list[tuple[int, str]]:
        """Return the keys of a module's functions. Compares ``id``s, since looking at each attribute takes longer."""
        return [key for key in list(self._patched) if key[0] == id(module)]

    def update_copies(self) -> None:
        """Update copies of replaced functions in all modules."""
        references.update_copies(self, references.all_modules)

    def was_applied(self, patch: Patch, module: ModuleType, target: Target) -> bool:
        """True if a patch was applied to a target, even if other code has replaced the attribute since."""
        patched = self._find(module, target)
        return patched is not None and patched.has(patch)

    def wrapper_around(self, module: ModuleType, target: Target) -> str:
        """Return the location of other code that wraps our function in a target, or ""."""
        patched = self._find(module, target)
        if patched is None or not patched.created or patched.present is patched.last_set:
            return ""
        function = functions.function_of(patched.present)
        code = getattr(function, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else f"a {type(function).__name__}"

    def _find(self, module: ModuleType, target: Target) -> Optional[PatchedAttribute]:
        try:
            owner, attribute = attributes.resolve(module, target)
        except TargetError:
            return None
        return self._patched.get((id(owner), attribute))

    def originals(self) -> dict[int, tuple[Any, PatchedAttribute]]:
        """Return the originals that other code may have copied before they were replaced, by their ``id``."""
        late = [patched for patched in list(self) if patched.late and patched.layers]
        found = (
            (functions.function_of(patched.original), patched) for patched in late if patched.original is not MISSING
        )
        return {id(function): (function, patched) for function, patched in found}
