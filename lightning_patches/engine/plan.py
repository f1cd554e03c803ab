"""The plan for one namespace: which selected patches can be applied, and where."""

from __future__ import annotations

import contextlib
import sys
import threading
from importlib.machinery import ModuleSpec
from typing import Callable, Iterable, Iterator, Literal, Optional

from lightning_patches import system
from lightning_patches.engine import attributes, distributions, fingerprints, gate
from lightning_patches.engine.gate import Decision
from lightning_patches.engine.toggle import Selection
from lightning_patches.errors import PatchError
from lightning_patches.patch import Patch, Target

Stage = Literal["before", "after", "late"]
"""The time of patching: before the execution of a module, right after it, or later."""


class Plan:
    """The decisions on the selected patches in a namespace, and the targets of each module.

    Args:
        namespace: the installed namespace.
        selection: the selected patches, and ``strict`` and ``quiet``.
        catalogue: the patches, in the order in which they are layered.
    """

    def __init__(
        self, namespace: distributions.Namespace, selection: Selection, catalogue: Iterable[Patch] = ()
    ) -> None:
        self.namespace = namespace
        self.selection = selection
        self.decisions: dict[str, Decision] = {}
        """Name of each selected patch -> decision. If the patch can't be applied later, the decision is replaced."""
        self.targets: dict[str, list[tuple[Patch, Target]]] = {}
        """The targets of pending patches by module name, in the order in which patches are layered."""
        self._states: dict[str, object] = {}
        """Of the file of each module that a decision depends on, as it was right before the first decision."""
        for patch in catalogue:
            if patch.name in selection.names:
                self._add(patch)

    def _add(self, patch: Patch) -> None:
        for target in patch.targets:
            part = self.namespace.part_of(target.location)
            if part is not None and target.module not in self._states:
                self._states[target.module] = fingerprints.state_of(part, target.module)
        try:
            decision = gate.decide(patch, self.namespace)
        except Exception as error:
            decision = Decision("failed", f"{type(error).__name__}: {error}")
        self.decisions[patch.name] = decision
        if decision.verdict == "pending":
            for target in gate.targets_in(patch, self.namespace):
                module = distributions.module_name(self.namespace.name, target.module)
                self.targets.setdefault(module, []).append((patch, target))

    def is_source_unchanged(self, target: Target) -> bool:
        """True if the file of a target is, by modification time and size, the one that was decided on."""
        part = self.namespace.part_of(target.location)
        state = fingerprints.state_of(part, target.module) if part is not None else None
        return state is not None and state == self._states.get(target.module)

    def load(self, module: str) -> None:
        """Import the code of the patches of a module. The caller must not hold the lock of the patcher."""
        targets = self.targets[module]
        for place, (patch, target) in enumerate(targets):
            with contextlib.suppress(Exception):  # raised again and reported when the patch is applied
                targets[place] = patch.with_code(target)

    def has_early_targets(self, module: str) -> bool:
        """True if a target of a module must be replaced before the module is executed."""
        return any(target.early for _, target in self.targets.get(module, ()))

    def pending(self, module: str, stage: Stage) -> Iterator[tuple[Patch, Target]]:
        """Yield the targets of a module that must be replaced at a stage."""
        for patch, target in self.targets.get(module, ()):
            if self.decisions[patch.name].verdict == "pending" and (
                stage == "late" or target.early == (stage == "before")
            ):
                yield patch, target

    def check_needs(self, module: str) -> dict[str, str]:
        """Refuse patches of a module that need a feature that torch lacks. Call it after Lightning has imported torch.

        Returns:
            The reasons, by patch name.
        """
        refused = {}
        for patch in {patch.name: patch for patch, _ in self.targets[module] if patch.needs}.values():
            lacking = gate.missing_feature(patch.needs, imports=True)
            if lacking and self.decisions[patch.name].verdict == "pending":
                self.decisions[patch.name] = Decision("not-supported", lacking)
                refused[patch.name] = lacking
        return refused

    def fail(self, patch: Patch, error: Exception) -> str:
        """Record that a patch could not be applied, and return the reason."""
        is_drift = isinstance(error, attributes.ReplacedError)
        reason = str(error) if is_drift else f"{type(error).__name__}: {error}"
        self.decisions[patch.name] = Decision("drifted" if is_drift else "failed", reason)
        return reason

    def refusals(self) -> dict[str, str]:
        """Return the reasons why selected patches are not applied, by patch name."""
        return {name: made.reason for name, made in self.decisions.items() if made.verdict in gate.REFUSED}

    def refusal(self) -> Optional[PatchError]:
        """Return the error for ``strict``, also for earlier refusals, so that a second import also fails."""
        for name, reason in self.refusals().items() if self.selection.strict else ():
            return PatchError(
                f"{name} is not applied: {reason}. (Without 'strict' the program continues without this patch.)"
            )
        return None


class Plans:
    """The plan of each namespace, for the active selection.

    Args:
        catalogue: the patches.
        announce: called with each new plan and the plan that it replaces.
    """

    def __init__(self, catalogue: Iterable[Patch], announce: Callable[[Plan, Optional[Plan]], None]) -> None:
        self.selection: Optional[Selection] = None
        """The active selection; :meth:`select` sets it."""
        self._catalogue = tuple(catalogue)
        self._announce = announce
        self._plans: dict[str, Plan] = {}
        self._renew_lock()
        system.after_fork(self._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()

    def made(self, name: str) -> Optional[Plan]:
        """Return the plan for a namespace if it has been created."""
        return self._plans.get(name)

    def find(self, name: str, importing: Optional[ModuleSpec] = None) -> Optional[Plan]:
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
            plan = Plan(namespace, selection, self._catalogue)
            with self._lock:
                is_current = self.selection is selection and self._plans.get(name) is old
                if is_current:
                    self._plans[name] = plan
            if is_current:
                self._announce(plan, old)

    def select(self, selection: Optional[Selection]) -> None:
        """Set the active selection; ``None`` also forgets the plans."""
        with self._lock:
            if selection is None:
                self._plans.clear()
            self.selection = selection


def namespace_of(module: str) -> str:
    """Return the namespace of a module of Lightning."""
    return "lightning" if module.partition(".")[0] == "lightning" else "pytorch_lightning"


def is_imported(namespace: str) -> bool:
    return any(package.partition(".")[0] in sys.modules for package in distributions.PARTS[namespace].values())
