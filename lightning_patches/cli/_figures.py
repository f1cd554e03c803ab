"""Numbers of known and fixed bugs of a release, for README, `status` and `audit`. They come from the records."""

from __future__ import annotations

from typing import Any, Container, Iterable, NamedTuple

from lightning_patches import patches as catalogue
from lightning_patches.cli import UsageError
from lightning_patches.engine import toggle
from lightning_patches.patch import Patch


class Figures(NamedTuple):
    """The numbers for one release.

    Args:
        known: known bugs, without those that only an older torch has.
        default: bugs that the default set fixes.
        opt_in: bugs that only opt-in patches fix.
        unmended: bugs without a patch.
    """

    known: int
    default: int
    opt_in: int
    unmended: int

    @property
    def all(self) -> int:
        """Number of bugs that LIGHTNING_PATCHES=all fixes."""
        return self.default + self.opt_in


def count(bugs: Iterable[Any], refused: Container[str] = ()) -> Figures:
    """Count bugs. Each is the :class:`Patch` that fixes it, or an ``Unpatched``.

    Args:
        bugs: the bugs of one release.
        refused: names of the patches that do not fit its code.
    """
    counted = [bug for bug in bugs if is_counted(bug)]
    mending = [bug for bug in counted if isinstance(bug, Patch) and bug.name not in refused]
    default = sum(bug.default for bug in mending)
    opt_in = len(mending) - default
    return Figures(len(counted), default, opt_in, len(counted) - default - opt_in)


def is_counted(bug: Any) -> bool:
    """True if the bug is present with every torch version."""
    return not isinstance(bug, Patch) or bug.is_counted


def of_installed() -> dict[str, Figures]:
    """The figures of the Lightnings of this environment, by their code: ``{"lightning 2.2.5": ...}``."""
    from lightning_patches.cli import audit

    default = toggle.parse("default", catalogue.all_patches())
    return {f"{one.distribution} {one.version}": one.figures for one in audit.audit_installed(default)}


def of_release(distribution: str, version: str) -> Figures:
    """The figures of a release by its number; all are 0 for one that is not known here."""
    from lightning_patches.cli import audit

    default = toggle.parse("default", catalogue.all_patches())
    try:
        (audited,) = audit.audit_requirements([f"{distribution}=={version}"], default)
    except UsageError:  # a version that pip would not take
        return count(())
    return count(bug.record for bug in audited.bugs)
