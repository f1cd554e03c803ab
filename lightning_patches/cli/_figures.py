"""How many bugs of a release are known, and how many of them the patches mend: the one place that counts.

README, `status` and `audit` give these figures. They follow from the records, not from a run.
"""

from __future__ import annotations

from typing import Any, Container, Iterable, NamedTuple

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


def count(bugs: Iterable[Any], refused: Container[str] = ()) -> Figures:
    """Count bugs, each a :class:`Patch` that mends it or, without one, an ``Unpatched``.

    Args:
        bugs: of one release.
        refused: names of the patches that do not fit its code.
    """
    counted = [bug for bug in bugs if is_counted(bug)]
    mending = [bug for bug in counted if isinstance(bug, Patch) and bug.name not in refused]
    default = sum(bug.default for bug in mending)
    opt_in = len(mending) - default
    return Figures(len(counted), default, opt_in, len(counted) - default - opt_in)


def is_counted(bug: Any) -> bool:
    """Whether a bug is there with any torch."""
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
