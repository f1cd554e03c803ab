"""Apply, verify and undo patches.

Each namespace has one :class:`~lightning_patches.engine.plan.Plan`. It is created before the first module of the
namespace is loaded, or immediately if one is already loaded. A plan is stored after it is complete, so an interruption
never leaves an incomplete plan.

wrapt's post-import hooks replace the targets (:mod:`~lightning_patches.engine.swaps`). wrapt drops a hook after the
call, so our loader registers it again after each execution of a module: also for ``importlib.reload``, for an import
after the module was removed from ``sys.modules``, and for the second attempt of a failed import.

Code that holds the lock of :class:`Patcher` must not import modules or wait for other threads.
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
        self._removed_functions: dict[int, Any] = {}
        """Replacements that :meth:`deactivate` removes, by ``id``; kept for the next call if it is interrupted."""
        self._renew_lock()
        system.after_fork(self._renew_lock)  # a forked child lacks the thread that would release the old lock

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()

    @property
    def selection(self) -> Optional[Selection]:
        """The active selection."""
        return self._plans.selection

    @property
    def active(self) -> bool:
        return self.selection is not None

    def activate(self, selection: Selection, caller: Optional[Callable[[], Any]] = None) -> None:
        """Apply ``selection`` to modules that are already imported, and to modules that are imported later.

        Args:
            selection: the selected patches.
            caller: set if the loader of a module calls this: the argument of :func:`hooks.install`. If it was replaced
                or removed, nothing is activated, since another thread has deactivated the patches in the meantime.

        Raises:
            PatchError: under ``strict``, if a selected patch cannot be applied to an imported module.
        """
        with self._lock:
            if caller is not None and hooks.installed() is not caller:
                return
            self._plans.select(selection)
            notices.use_options_of(lambda: self._plans.selection)
            hooks.install(lambda: self, self.needs_work)
            self.swaps.keep(selection.names)
        if caller is None:
            # A loader must not wait: the other thread may need a lock that this one holds. It also need not wait,
            # since our finder was installed before, and all modules since then were imported with our loader.
            hooks.wait_for_imports()
        refused: Optional[PatchError] = None
        for name in filter(is_imported, distributions.PARTS):
            plan = self._plans.find(name)
            if plan is None:
                continue
            for module in list(plan.targets):
                if sys.modules.get(module) is not None:
                    try:
                        self._patch_executed(plan, module, "late")
                    except PatchError as error:
                        refused = refused or error
            refused = refused or plan.refusal()
        with self._lock:
            self.swaps.update_copies()
        if refused is not None:
            raise refused

    def deactivate(self) -> list[str]:
        """Restore all originals. After an interruption, call it again.

        Returns:
            The attributes that could not be restored, since other code has replaced or wrapped our function, and places
            that still reference our functions.
        """
        with self._lock:
            hooks.remove()
            made = (function for patched in self.swaps for function in patched.created)
            self._removed_functions.update({id(function): function for function in made})
            left = self.swaps.keep(frozenset())
            self._plans.select(None)
            self._announcements.clear()
        held = [place for places in references.find(self._removed_functions).values() for place in places]
        self._removed_functions = {}
        return [*left, *(place for place in held if place not in left)]

    def decision(self, patch: Patch, namespace: distributions.Namespace) -> Decision:
        """Return the decision on a patch."""
        plan = self._plans.made(namespace.name)
        made = plan.decisions.get(patch.name) if plan is not None else None
        return made if made is not None else gate.decide(patch, namespace)

    def needs_work(self, name: str, spec: Optional[ModuleSpec] = None) -> bool:
        """True if a module of Lightning needs work; see :class:`hooks.NeedsWork`."""
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
        return name in plan.targets or name in distributions.ROOT_PACKAGES

    def before(self, module: ModuleType) -> None:
        """Patch early targets before a module of Lightning is executed.

        Raises:
            PatchError: under ``strict``, if a selected patch cannot be applied.
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
        """Patch a module of Lightning after it was executed.

        Raises:
            PatchError: under ``strict``, if a selected patch is not applied.
        """
        name = module.__name__
        try:
            plan = self._plans.find(namespace_of(name))
            if plan is not None and name in plan.targets:
                self._patch_executed(plan, name, "after")
        except Exception as error:
            self._announcements.internal_error(name, error, self.selection)

    def _patch_executed(self, plan: Plan, name: str, stage: Stage) -> None:
        """Make wrapt call :meth:`_patch` immediately. The caller must not hold our lock.

        :meth:`_patch` must not import modules: wrapt below 1.15 holds a lock during the call, and wrapt's finder waits
        for that lock while it holds Python's import lock.
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
