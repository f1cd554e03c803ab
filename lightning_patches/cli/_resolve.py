"""The release that a requirement of Lightning resolves to, together with the other requirements of the same file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from lightning_patches.engine import distributions
from lightning_patches.known.releases import Bounds, bounds, is_known, split
from lightning_patches.known.releases import known as known_releases

if TYPE_CHECKING:
    from packaging.requirements import Requirement

Group = Tuple[str, ...]
"""Packages that are installed together: by one command of a Dockerfile, or with one extra of a project."""
MAX_SPECS = 20
"""Different requirements of one package in one group. More than three come from no tool that we know."""
MAX_LENGTH = 500
"""Characters of a specifier."""
MAX_ENVIRONMENTS = 100
"""Combinations of requirements that are tried."""


def is_same(release: str, version: str) -> bool:
    """True if two numbers are of one release, as 2.2 and 2.2.0 are."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(release) == Version(version)
    except InvalidVersion:
        return False


def pinned_version(requirement: Requirement) -> Optional[str]:
    """The version that ``==`` or ``===`` asks for; ``None`` for a range."""
    for one in requirement.specifier:
        if one.operator in ("==", "===") and "*" not in one.version:
            return str(one.version)
    return None


@dataclass
class Pins:
    """The versions of other packages, and of Python, that a file asks for.

    Args:
        groups: the specifiers of each package, by group. A group's packages also belong to all groups whose names begin
            with its name, so those of ``()`` belong to all groups.
        locks: a tool locks the project for all Pythons that it allows, as Poetry does; then the oldest one decides.
    """

    groups: Dict[Group, Dict[str, List[str]]] = field(default_factory=dict)
    locks: bool = False

    def add(self, name: str, specifier: str, group: Group = ()) -> bool:
        """Add a requirement. Returns False if it is too long, or there are too many of this package."""
        if len(specifier) > MAX_LENGTH:
            return False
        specs = self.groups.setdefault(() if name == "python" else group, {}).setdefault(name, [])
        if specifier not in specs:
            specs.append(specifier)
        return len(specs) <= MAX_SPECS

    def environments(self, group: Group) -> Iterator[Dict[str, str]]:
        """Environments that may be installed: the group's own requirements first, then the same with other groups."""
        own = list(_alternatives(self._of(group), self.locks))
        yield from own
        for other in self.groups:
            if group[: len(other)] == other:
                continue
            for added in _alternatives(self._of(other), self.locks):
                for environment in own:
                    both = {name: _joined([environment.get(name, ""), spec]) for name, spec in added.items()}
                    yield {**environment, **{name: spec for name, spec in both.items() if spec is not None}}

    def _of(self, group: Group) -> Dict[str, List[str]]:
        found: Dict[str, List[str]] = {}
        for length in range(len(group) + 1):
            for name, specs in self.groups.get(group[:length], {}).items():
                found.setdefault(name, []).extend(specs)
        return found

    def exclude(self, needed: Sequence[str], group: Group, release: Bounds) -> bool:
        """True if the file keeps one of the needed packages out, in the versions that are needed.

        Args:
            needed: requirements such as ``"torch>=2.6"``.
            group: the group of the Lightning requirement.
            release: the bounds of its release. Requirements that contradict them do not count: installing Lightning
                replaces these packages.
        """
        return any(self._excludes(*split(text), group, release) for text in needed)

    def _excludes(self, name: str, needed: str, group: Group, release: Bounds) -> bool:
        specs = [
            spec
            for other, found in self.groups.items()
            if not any(part.startswith("[") for part in other if part not in group)  # an extra may be left out
            for spec in found.get(name, ())
            if are_compatible(spec, release.get(name, ""))
        ]
        joined = _joined(specs)
        return bool(specs) and not any(are_compatible(spec, needed) for spec in (specs if joined is None else [joined]))


def _joined(specs: Sequence[str]) -> Optional[str]:
    """All specifiers in one; ``None`` if no version meets them all."""
    joined = ",".join(dict.fromkeys(filter(None, specs)))
    return joined if len(specs) < 2 or are_compatible(joined, "") else None


def _alternatives(specs: Mapping[str, Sequence[str]], locks: bool) -> Iterator[Dict[str, str]]:
    """One specifier for each package. Where some contradict each other, each of them in turn."""
    joined = {name: _joined(found) for name, found in specs.items()}
    agreed = {name: spec for name, spec in joined.items() if spec is not None}
    if locks and agreed.get("python"):
        agreed["python"] = _oldest_python(agreed["python"])
    torn = [name for name in joined if name not in agreed]
    for name in torn:
        for spec in specs[name]:
            yield {**agreed, name: spec}
    if not torn:
        yield agreed


def _oldest_python(spec: str) -> str:
    return next(python_minors(spec), "") or spec


def python_minors(spec: str) -> Iterator[str]:
    """The Pythons that a specifier allows, oldest first: ``"==3.8.*"``, ``"==3.9.*"``."""
    for minor in range(5, 30):
        if are_compatible(spec, f"==3.{minor}.*"):
            yield f"==3.{minor}.*"


@lru_cache(maxsize=10_000)
def are_compatible(spec: str, other: str) -> bool:
    """True if some version meets both specifiers. If one does, one at the end of a range or next to it does."""
    from packaging.specifiers import SpecifierSet

    text = ",".join(filter(None, (spec, other)))
    candidates = ["0"]
    for version in re.findall(r"\d+(?:\.\d+)*(?:(?:a|b|rc|\.dev|\.post)\d+)?(?:\+[\w.]+)?", text):
        numbers = [int(number) for number in re.findall(r"^[\d.]+\d|^\d", version)[0].split(".")]
        next_one = ".".join(map(str, [*numbers[:-1], numbers[-1] + 1]))
        candidates += [version, f"{version.partition('+')[0]}.post1" if "post" not in version else version]
        candidates += [f"{'.'.join(map(str, numbers))}.1", next_one]
    both = SpecifierSet(text)
    return any(both.contains(candidate, prereleases=True) for candidate in candidates)


class Resolved(NamedTuple):
    """The release that a requirement resolves to.

    Args:
        version: ``None`` if the requirement does not determine it.
        known: True if the release is known here.
        note: a note for the reader, or "".
    """

    version: Optional[str]
    known: bool
    note: str = ""


def resolve(requirement: Requirement, pins: Optional[Pins] = None, group: Group = ()) -> Resolved:
    """Resolve a requirement of Lightning to the release that an installer takes.

    Args:
        requirement: one of Lightning.
        pins: the other requirements of the same file.
        group: the group that the requirement is in.
    """
    from packaging.utils import canonicalize_name

    name = str(canonicalize_name(requirement.name))
    if requirement.url:
        return Resolved(None, False, "it comes from an address or a directory: install it, and audit the environment")
    releases = known_releases(name)
    matching = list(requirement.specifier.filter([*releases, *sorted(distributions.FORBIDDEN)]))
    all_known = f"{releases[0]} to {releases[-1]}"
    pinned = pinned_version(requirement)
    if pinned:
        version = next((release for release in matching if is_same(release, pinned)), pinned)
        if is_known(name, version):
            return Resolved(version, True)
        return Resolved(version, False, f"the known releases are {all_known}")
    allowed = [release for release in releases if release in matching and "yanked" not in bounds(name, release)]
    if not allowed:
        return Resolved(None, False, f"no known release of Lightning ({all_known}) matches")
    return _newest(name, allowed, pins or Pins(), group)


def _newest(name: str, allowed: List[str], pins: Pins, group: Group) -> Resolved:
    found: Dict[str, str] = {}
    against = ""
    tried: Set[FrozenSet[Tuple[str, str]]] = set()
    bounded_here = bounds(name, allowed[-1]).keys() | bounds(name, allowed[0]).keys() | {name}
    for environment in pins.environments(group):
        deciding = frozenset(pin for pin in environment.items() if pin[0] in bounded_here)
        if deciding in tried:
            continue
        tried.add(deciding)
        if len(tried) > MAX_ENVIRONMENTS:
            return Resolved(None, False, "the file has too many different requirements of the same packages")
        matching = set(_matching(environment.get(name, ""), tuple(allowed)))
        fitting = (one for one in reversed(allowed) if one in matching and not _conflicts(name, one, environment))
        newest = next(fitting, None)
        against = ", ".join(_conflicts(name, allowed[-1], environment))
        if allowed[-1] not in matching:
            against = ", ".join(filter(None, [f"{name}{environment[name]}", against]))
        if newest is not None:
            found.setdefault(newest, against)
    if not found:
        return Resolved(None, False, f"no known release that matches allows {against}")
    if len(found) > 1:
        each = [f"{release}{f' with {against}' if against else ''}" for release, against in found.items()]
        return Resolved(None, False, f"the other requirements of the file leave it open: {', or '.join(each)}")
    ((newest, against),) = found.items()
    why = f" and allows {against}" if against else ""
    return Resolved(newest, True, f"not pinned; {newest} is the newest known release that matches{why}")


def _conflicts(name: str, release: str, environment: Mapping[str, str]) -> List[str]:
    """The requirements of other packages that contradict the bounds of a release."""
    found = bounds(name, release)
    return [
        f"{package}{spec}"
        for package, spec in environment.items()
        if package in found and not are_compatible(spec, found[package])
    ]


@lru_cache(maxsize=10_000)
def _matching(spec: str, releases: Tuple[str, ...]) -> Tuple[str, ...]:
    from packaging.specifiers import SpecifierSet

    return tuple(SpecifierSet(spec).filter(releases))
