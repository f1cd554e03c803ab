"""Resolve a requirement of Lightning to a release, together with the other requirements of the same file."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Set, Tuple

from lightning_patches.cli.audit.pins import Pins, are_compatible, pinned_version
from lightning_patches.cli.audit.requirements import canonical_name
from lightning_patches.cli.audit.sources.items import Group
from lightning_patches.engine import distributions
from lightning_patches.known import releases

if TYPE_CHECKING:
    from packaging.requirements import Requirement

MAX_ENVIRONMENTS = 100
"""Most combinations of requirements that are tried."""


class Resolved(NamedTuple):
    """The release to which a requirement resolves.

    Args:
        version: the release; ``None`` if it is unknown.
        known: True if its bugs are known.
        note: a note for the reader, or "".
    """

    version: Optional[str]
    known: bool
    note: str = ""


def resolve(requirement: Requirement, pins: Optional[Pins] = None, group: Group = ()) -> Resolved:
    """Resolve a requirement of Lightning to the release that an installer would choose.

    Args:
        requirement: the requirement.
        pins: the other requirements of the same file.
        group: the group of the requirement.
    """
    name = canonical_name(requirement)
    if requirement.url:
        return Resolved(None, False, "it is installed from a URL or a directory: install it, and audit the environment")
    known = releases.known(name)
    matching = list(requirement.specifier.filter([*known, *sorted(distributions.FORBIDDEN)]))
    all_known = f"{known[0]} to {known[-1]}"
    pinned = pinned_version(requirement)
    if pinned:
        version = next((release for release in matching if _is_same(release, pinned)), pinned)
        if releases.is_known(name, version):
            return Resolved(version, True)
        return Resolved(version, False, f"the known releases are {all_known}")
    allowed = [release for release in known if release in matching and "yanked" not in releases.bounds(name, release)]
    if not allowed:
        return Resolved(None, False, f"no known release of Lightning ({all_known}) matches")
    return _newest(name, allowed, pins or Pins(), group)


def _newest(name: str, allowed: List[str], pins: Pins, group: Group) -> Resolved:
    found: Dict[str, str] = {}
    conflicts = ""
    tried: Set[FrozenSet[Tuple[str, str]]] = set()
    bounded = releases.bounds(name, allowed[-1]).keys() | releases.bounds(name, allowed[0]).keys() | {name}
    for environment in pins.environments(group):
        deciding = frozenset(pin for pin in environment.items() if pin[0] in bounded)
        if deciding in tried:
            continue
        tried.add(deciding)
        if len(tried) > MAX_ENVIRONMENTS:
            return Resolved(None, False, "the file has too many different requirements of the same packages")
        matching = set(_matching(environment.get(name, ""), tuple(allowed)))
        fitting = (one for one in reversed(allowed) if one in matching and not _conflicts(name, one, environment))
        newest = next(fitting, None)
        conflicts = ", ".join(_conflicts(name, allowed[-1], environment))
        if allowed[-1] not in matching:
            conflicts = ", ".join(filter(None, [f"{name}{environment[name]}", conflicts]))
        if newest is not None:
            found.setdefault(newest, conflicts)
    if not found:
        return Resolved(None, False, f"no matching known release allows {conflicts}")
    if len(found) > 1:
        each = [f"{release}{f' with {pins}' if pins else ''}" for release, pins in found.items()]
        return Resolved(None, False, f"the other requirements of the file allow several releases: {', or '.join(each)}")
    ((newest, conflicts),) = found.items()
    why = f" and allows {conflicts}" if conflicts else ""
    return Resolved(newest, True, f"not pinned; {newest} is the newest known release that matches{why}")


def _conflicts(name: str, release: str, environment: Mapping[str, str]) -> List[str]:
    """Return the requirements of other packages that contradict the bounds of a release."""
    found = releases.bounds(name, release)
    return [
        f"{package}{spec}"
        for package, spec in environment.items()
        if package in found and not are_compatible(spec, found[package])
    ]


@lru_cache(maxsize=10_000)
def _matching(spec: str, releases: Tuple[str, ...]) -> Tuple[str, ...]:
    from packaging.specifiers import SpecifierSet

    return tuple(SpecifierSet(spec).filter(releases))


def _is_same(release: str, version: str) -> bool:
    """True if two versions are the same release, such as 2.2 and 2.2.0."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(release) == Version(version)
    except InvalidVersion:
        return False
