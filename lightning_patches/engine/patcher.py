"""Apply, verify and undo patches.

Each namespace has one :class:`~lightning_patches.engine.plan.Plan`. It is created before the first module of the
namespace is loaded, or at once if one is loaded. A plan is built completely before it is set, so an interruption leaves
either all of it or nothing.

wrapt's post-import hooks replace the targets (:mod:`~lightning_patches.engine.swaps`). wrapt drops a hook after the
call, so our loader registers it again after each execution of a module: also for ``importlib.reload``, for an import
after the module was removed from ``sys.modules``, and for the second attempt of a failed import.

While the lock is held, nothing is imported, and no other thread is waited for.
"""

from __future__ import annotations

import functools
import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Iterable, Optional

import wrapt

from lightning_patches import notices, system
from lightning_patches.engine import distributions, gate, hooks, references
from lightning_patches.engine.announcements import Announcements
from lightning_patches.engine.gate import Decision
from lightning_patches.engine.plan import Plan, Plans, Stage, is_imported, namespace_of
from lightning_patches.engine.swaps import Swaps
from lightning_patches.engine.toggle import Selection
from lightning_patches.errors import PatchError
from lightning_patches.patch import Patch


class Patcher:
    """Applies patches of a catalogue to each Lightning that is imported, and undoes them.

    Args:
        catalogue: the patches, in the order in which they are layered.
    """

    def __init__(self, catalogue: Iterable[Patch]) -> None:
        self.catalogue = tuple(catalogue)
        self.swaps = Swaps(self.catalogue)
        self._announcements = Announcements(self.catalogue)
        self._plans = Plans(self.catalogue, self._announcements.plan)
        self._to_take_back: dict[int, Any] = {}
        """Functions of a :meth:`deactivate` that is not finished, by their ``id``."""
        self._renew_lock()
        system.after_fork(self._renew_lock)  # in the child, the thread that holds the lock does not exist

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()

    @property
    def selection(self) -> Optional[Selection]:
        """The active selection."""
        return self._plans.selection

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
            self._plans.select(selection)
            notices.use_options_of(self._plans.get_selection)
            hooks.install(lambda: self, self.concerns)
            self.swaps.keep(selection.names)
        if on_behalf_of is None:
            # Not during an import of Lightning: the other thread may need a lock that this one holds. It is not needed
            # either, since all modules imported after the finder was installed used our loader.
            hooks.wait_for_imports()
        refused: Optional[PatchError] = None
        for name in distributions.PARTS:
            plan = self._plans.find(name) if is_imported(name) else None
            for module in list(plan.targets) if plan is not None else ():
                if plan is None or sys.modules.get(module) is None:
                    continue
                try:
                    self._patch_executed(plan, module, "late")
                except PatchError as error:
                    refused = refused or error
            if plan is not None and refused is None:
                refused = plan.refusal()
        with self._lock:
            self.swaps.follow()
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
            made = (function for slot in self.swaps for function in slot.made)
            self._to_take_back.update({id(function): function for function in made})
            left = self.swaps.keep(frozenset())
            self._plans.select(None)
            self._announcements.clear()
        held = [place for places in references.find(self._to_take_back).values() for place in places]
        self._to_take_back = {}
        return [*left, *(place for place in held if place not in left)]

    def decision(self, patch: Patch, namespace: distributions.Namespace) -> Decision:
        """Return the decision on a patch; ``pending`` means that it can be applied."""
        plan = self._plans.made(namespace.name)
        made = plan.decisions.get(patch.name) if plan is not None else None
        return made if made is not None else gate.decide(patch, namespace)

    def concerns(self, name: str, spec: Optional[ModuleSpec] = None) -> bool:
        """True if a module of Lightning needs work; see :class:`hooks.Concerns`."""
        selection = self.selection
        if selection is None or not selection.names:
            return False
        try:
            namespace = namespace_of(name)
            plan = self._plans.made(namespace) if spec is None else self._plans.find(namespace, spec)
        except Exception as error:
            self._announcements.internal_error(name, error, self.selection)
            return False
        if plan is None or plan.selection is not selection:
            return spec is None
        return name in plan.targets or (selection.strict and name in distributions.ROOT_PACKAGES)

    def before(self, module: ModuleType) -> None:
        """A module of Lightning is about to be executed.

        Raises:
            PatchError: under ``strict``, if a wanted patch cannot be applied.
        """
        name = module.__name__
        try:
            plan = self._plans.find(namespace_of(name))
            if plan is not None and plan.has_early_targets(name):
                plan.load(name)
                self._patch(module, stage="before")
            refused = plan.refusal() if plan is not None and name in distributions.ROOT_PACKAGES else None
            if refused is not None:
                raise refused
        except Exception as error:
            self._announcements.internal_error(name, error, self.selection)

    def after(self, module: ModuleType) -> None:
        """A module of Lightning has been executed.

        Raises:
            PatchError: under ``strict``, if a wanted patch is not applied.
        """
        name = module.__name__
        try:
            plan = self._plans.find(namespace_of(name))
            if plan is not None and name in plan.targets:
                self._patch_executed(plan, name, "after")
        except Exception as error:
            self._announcements.internal_error(name, error, self.selection)

    def _patch_executed(self, plan: Plan, name: str, stage: Stage) -> None:
        """Make wrapt call :meth:`_patch` at once. The caller must not hold our lock.

        wrapt below 1.15 holds its own lock during the call, and its finder waits for this lock while it holds Python's.
        So :meth:`_patch` must not import modules that are not loaded yet.
        """
        plan.load(name)
        self._announcements.refusals(plan, plan.check_needs(name))
        wrapt.register_post_import_hook(functools.partial(self._patch, stage=stage), name)

    def _patch(self, module: ModuleType, stage: Stage) -> None:
        """Replace the targets of a module of Lightning.

        Raises:
            PatchError: under ``strict``, if a selected patch is not applied.
        """
        with self._lock:
            plan = self._plans.made(namespace_of(module.__name__))
            if plan is None or self.selection is None:
                return
            failures = self.swaps.apply(plan, module, stage)
            refused = plan.refusal()
        self._announcements.refusals(plan, failures)
        if refused is not None:
            raise refused
