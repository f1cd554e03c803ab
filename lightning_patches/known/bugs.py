"""The known bugs of a Lightning release, and whether a selection of patches fixes them."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Iterator, Union

from lightning_patches import patches as catalogue
from lightning_patches import system
from lightning_patches.engine import distributions, gate, toggle
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.fork import wheel
from lightning_patches.known import releases
from lightning_patches.known.installed import Installed
from lightning_patches.known.unpatched import UNPATCHED, Unpatched
from lightning_patches.patch import Patch


@dataclass(frozen=True)
class Bug:
    """A known bug of a release.

    Args:
        record: the patch that fixes it, or the record of a bug without a patch.
        cover: kind of the patch: "default" or "opt-in"; "none" without a patch.
        covered: True if the patch will be applied.
        reason: why the patch will not be applied.
        left_out: True if the patch is a default patch that LIGHTNING_PATCHES does not select.
        refused: True if the patch does not fit the installed code.
        selected: True if LIGHTNING_PATCHES selects the patch.
    """

    record: Union[Patch, Unpatched]
    cover: str
    covered: bool
    reason: str = ""
    left_out: bool = False
    refused: bool = False
    selected: bool = False

    @property
    def fixed(self) -> str:
        """``"yes"``, ``"no"``, or ``"opt-in"`` if an opt-in patch that is not selected would fix it."""
        if self.covered:
            return "yes"
        return "opt-in" if self.cover == "opt-in" and not self.refused else "no"

    @property
    def is_counted(self) -> bool:
        """True if the totals count the bug, since it occurs with every torch version and on every machine."""
        return self.record.is_counted if isinstance(self.record, Patch) else not self.machine

    @property
    def machine(self) -> str:
        """The machine without which the bug does not occur; "" for most bugs."""
        return self.record.machine if isinstance(self.record, Unpatched) else ""


def fixing_patches() -> list[Patch]:
    """Return all patches except those that only warn, since the bug that they warn of has another record."""
    return [patch for patch in catalogue.all_patches() if not patch.warns]


@lru_cache(maxsize=None)
def bugs_of(distribution: str, version: str, selection: toggle.Selection) -> tuple[Bug, ...]:
    """Return the bugs of a release, by its version number.

    Args:
        distribution: ``"lightning"``, ``"pytorch-lightning"`` or ``"lightning-fabric"``.
        version: the release. Check :func:`releases.is_known` first: the result is empty for an unknown release.
        selection: the selected patches.
    """
    bugs = [_without_patch(bug) for bug in UNPATCHED if has(bug, distribution, version)]
    carried = wheel.carried_by(version) or frozenset() if "+patches." in version else frozenset()
    for patch in fixing_patches() if version not in distributions.FORBIDDEN else ():
        parts = {re.split("[.:]", location)[0] for location in patch.locations}
        if patch.name not in carried and parts & set(_PARTS[distribution]) and _in_ranges(version, patch.affected):
            bugs.append(_with_patch(patch, selection))
    return tuple(bugs)


_PARTS = {
    "lightning": ("pytorch", "fabric"),
    "pytorch-lightning": ("pytorch", "fabric"),
    "lightning-fabric": ("fabric",),
}
"""Distribution -> its parts of upstream's source tree."""


def bugs_of_installed(one: Installed, selection: toggle.Selection) -> tuple[list[Bug], list[str]]:
    """Return the bugs of an installed distribution, by its code.

    Returns:
        The bugs, and the names of bugs that do not occur with the installed versions of other packages.
    """
    bugs, excluded = [], []
    bounds = releases.bounds(one.distribution, one.version)
    for bug in _by_code(one, selection):
        if any(_is_excluded(needed, bounds) for needed in bug.record.only_with):
            excluded.append(bug.record.name)
        else:
            bugs.append(bug)
    return bugs, excluded


def _by_code(one: Installed, selection: toggle.Selection) -> Iterator[Bug]:
    for bug in UNPATCHED:
        if one.forbidden if bug.name == "compromised-release" else has(bug, one.distribution, one.version):
            yield _without_patch(bug)
    namespace = distributions.find(one.namespace)
    if namespace is None or one.forbidden:
        return
    own = {name: part for name, part in namespace.parts.items() if part.distribution == one.distribution}
    versions = {part.version for part in own.values()}
    for patch in fixing_patches():
        decision = gate.decide(patch, distributions.Namespace(namespace.name, own))
        if decision.verdict == "pending":
            yield _with_patch(patch, selection)
        elif decision.verdict in gate.REFUSED and any(
            _in_ranges(version, patch.affected_known) for version in versions
        ):
            selected = patch.name in selection.names
            yield Bug(patch, _cover(patch), False, decision.reason, refused=True, selected=selected)


def _is_excluded(needed: str, bounds: releases.Bounds) -> bool:
    """True if a bug does not occur with the installed version of a package.

    A version outside of Lightning's bounds excludes nothing, because installing Lightning replaces it.

    Args:
        needed: the versions with the bug, as in ``"torch>=2.6"``.
        bounds: Lightning's requirements.
    """
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    name, spec = releases.split(needed)
    installed = platform.python_version().rstrip("+") if name == "python" else system.installed_version(name)
    try:
        version = Version(installed or "")
    except InvalidVersion:  # not installed, or its metadata cannot be read
        return False
    fits = SpecifierSet(bounds.get(name, "")).contains(version, prereleases=True)
    return fits and not SpecifierSet(spec).contains(version, prereleases=True)


def _with_patch(patch: Patch, selection: toggle.Selection) -> Bug:
    if patch.name in selection.names:
        return Bug(patch, _cover(patch), True)
    if not patch.default:
        return Bug(patch, "opt-in", False, f"opt-in: LIGHTNING_PATCHES=default,{patch.name} adds it")
    return Bug(patch, "default", False, f"LIGHTNING_PATCHES={selection.shown} leaves it out", True)


def _without_patch(bug: Unpatched) -> Bug:
    return Bug(bug, "none", False, bug.why_not)


def _cover(patch: Patch) -> str:
    return "default" if patch.default else "opt-in"


def has(bug: Unpatched, distribution: str, version: str) -> bool:
    """True if a release of a distribution has a bug, by its version number."""
    return (not bug.distributions or distribution in bug.distributions) and _in_ranges(version, bug.affected)


def _in_ranges(version: str, ranges: tuple[str, ...]) -> bool:
    from packaging.version import InvalidVersion

    try:
        return in_ranges(version, ranges)
    except InvalidVersion:
        return False
