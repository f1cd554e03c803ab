"""The counts of known and fixed bugs of a release, for README, ``status`` and ``audit``."""

from __future__ import annotations

from typing import Iterable, NamedTuple

from lightning_patches import patches as catalogue
from lightning_patches.engine import toggle
from lightning_patches.known import bugs, releases
from lightning_patches.known.bugs import Bug
from lightning_patches.known.installed import find_installed
from lightning_patches.patch import Patch


class Figures(NamedTuple):
    """The counts for one release.

    Args:
        known: known bugs, without those that occur only with an older torch.
        default: bugs that the default set fixes.
        opt_in: bugs that only opt-in patches fix.
        unfixed: the other bugs.
    """

    known: int
    default: int
    opt_in: int
    unfixed: int

    @property
    def all(self) -> int:
        """The number of bugs that LIGHTNING_PATCHES=all fixes."""
        return self.default + self.opt_in

    def as_dict(self) -> dict[str, int]:
        """The counts with the keys of ``--json``."""
        return {"known": self.known, "default": self.default, "opt_in": self.opt_in, "unmended": self.unfixed}


def count(found: Iterable[Bug]) -> Figures:
    """Count the bugs of one release."""
    counted = [bug for bug in found if bug.is_counted]
    fixable = [bug.record.default for bug in counted if isinstance(bug.record, Patch) and not bug.refused]
    return Figures(len(counted), sum(fixable), len(fixable) - sum(fixable), len(counted) - len(fixable))


def of_installed() -> dict[str, Figures]:
    """Return the figures of each installed Lightning, by its code: ``{"lightning 2.2.5": ...}``."""
    return {
        f"{one.distribution} {one.version}": count(bugs.bugs_of_installed(one, _default())[0])
        for one in find_installed()
    }


def of_release(distribution: str, version: str) -> Figures:
    """Return the figures of a release, by its version number; all are 0 for an unknown release."""
    return count(bugs.bugs_of(distribution, version, _default()) if releases.is_known(distribution, version) else ())


def _default() -> toggle.Selection:
    return toggle.parse("default", catalogue.all_patches())
