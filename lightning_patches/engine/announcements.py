"""Messages of the patcher: the line at start, patches that are not applied, and internal errors."""

from __future__ import annotations

import traceback
from typing import Iterable, Optional

from lightning_patches import notices
from lightning_patches.engine import gate
from lightning_patches.engine.plan import Plan
from lightning_patches.engine.toggle import Selection
from lightning_patches.errors import PatchError
from lightning_patches.patch import Patch


def _needless(plan: Plan) -> dict[str, str]:
    """Return why the patches of a requested name or number do nothing for this release, for one patch of each."""
    found = {}
    for names in plan.selection.requested:
        selected = sorted(names.intersection(plan.decisions))  # a later item may have removed some
        if selected and all(plan.decisions[name].verdict in gate.ELSEWHERE for name in selected):
            found[selected[0]] = plan.decisions[selected[0]].reason
    return found


class Announcements:
    """Prints each message once.

    Args:
        catalogue: the patches.
    """

    def __init__(self, catalogue: Iterable[Patch]) -> None:
        self._counted = frozenset(patch.name for patch in catalogue if patch.is_counted)
        self._printed: set[str] = set()

    def clear(self) -> None:
        """Forget the printed messages, so that another activation prints them again."""
        self._printed.clear()

    def plan(self, plan: Plan, old: Optional[Plan]) -> None:
        """Print the number of fixes if it differs from the old plan, and the patches that are not applied."""
        count, before = (self._count(each) if each is not None else 0 for each in (plan, old))
        if count != before:
            part = next(iter(plan.namespace.parts.values()))
            fixes = f"{count or 'no'} {'fix' if count == 1 else 'fixes'} ('lightning-patches status' lists them)"
            notices.notice(f"{part.distribution} {part.version}: {fixes}")
        self.refusals(plan, {**_needless(plan), **plan.refusals()})

    def _count(self, plan: Plan) -> int:
        return sum(plan.decisions[name].verdict == "pending" for name in self._counted.intersection(plan.decisions))

    def refusals(self, plan: Plan, reasons: dict[str, str]) -> None:
        """Print one line per reason why patches are not applied. Under ``strict``, the patcher raises instead.

        Args:
            plan: the plan that has the patches.
            reasons: the reasons, by patch name.
        """
        by_reason: dict[str, list[str]] = {}
        for name, reason in reasons.items() if not plan.selection.strict else ():
            by_reason.setdefault(reason, []).append(name)
        for reason, names in by_reason.items():
            subject = f"{names[0]} is" if len(names) == 1 else f"{len(names)} patches are"
            line = f"{subject} not applied: {reason}"
            if line not in self._printed:
                self._printed.add(line)
                notices.notice(line)

    def internal_error(self, module: str, error: Exception, selection: Optional[Selection]) -> None:
        """Report an internal error without raising it in the user's import.

        Raises:
            PatchError: under ``strict``.
        """
        if isinstance(error, PatchError):
            raise error  # raised only under strict
        if selection is not None and selection.strict:
            raise PatchError(f"{module} is not patched: {type(error).__name__}: {error}") from error
        trace = traceback.format_exc()
        if trace not in self._printed:
            self._printed.add(trace)
            message = f"internal error while patching {module}, which is not patched. Please report this:"
            notices.notice(message, urgent=True, details=trace)
