"""How many bugs of a release are known, and how many of them the patches mend: the one place that counts.

README, `status` and `audit` give these figures. They follow from the records, not from a run.
"""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple

from lightning_patches import patches as catalogue
from lightning_patches.cli import UsageError
from lightning_patches.engine import toggle
from lightning_patches.patch import Patch


class Figures(NamedTuple):
    """Of one release.

    Args:
        known: bugs, but for those that only an older torch has.
        default: mended by the default set.
        opt_in: mended only by patches that are off by default.
        unmended: by no patch.
    """

    known: int
    default: int
    opt_in: int
    unmended: int

    @property
    def all(self) -> int:
        """Mended with LIGHTNING_PATCHES=all."""
        return self.default + self.opt_in


def count(bugs: Iterable[Any]) -> Figures:
    """Count bugs, each a :class:`Patch` that mends it or, without one, an ``Unpatched``."""
    counted = [bug for bug in bugs if is_counted(bug)]
    default = sum(isinstance(bug, Patch) and bug.default for bug in counted)
    opt_in = sum(isinstance(bug, Patch) and not bug.default for bug in counted)
    return Figures(len(counted), default, opt_in, len(counted) - default - opt_in)


def is_counted(bug: Any) -> bool:
    """Whether a bug is there with any torch."""
    return not isinstance(bug, Patch) or bug.is_counted


def of_release(distribution: str, version: str) -> Figures:
    """The figures of a release by its number; all are 0 for one that is not known here."""
    from lightning_patches.cli import audit

    default = toggle.parse("default", catalogue.all_patches())
    try:
        (audited,) = audit.audit_requirements([f"{distribution}=={version}"], default)
    except UsageError:  # a version that pip would not take
        return count(())
    return count(bug.record for bug in audited.bugs)
