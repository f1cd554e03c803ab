"""The versions of other packages that a file requires in addition to Lightning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Dict, Iterator, List, Mapping, Optional, Sequence

from lightning_patches.cli.audit.sources.items import Group
from lightning_patches.known.releases import Bounds, split

if TYPE_CHECKING:
    from packaging.requirements import Requirement

MAX_SPECS = 20
"""Most different requirements of one package in one group. No known tool writes more than three."""
MAX_LENGTH = 500
"""Longest specifier, in characters."""


def pinned_version(requirement: Requirement) -> Optional[str]:
    """Return the version after ``==`` or ``===``; ``None`` for a range."""
    for one in requirement.specifier:
        if one.operator in ("==", "===") and "*" not in one.version:
            return str(one.version)
    return None


@dataclass
class Pins:
    """The versions of other packages, and of Python, that a file requires.

    Args:
        groups: the specifiers of each package, by group. The packages of a group also belong to all groups whose names
            begin with its name. So the packages of ``()`` belong to all groups.
        locks: True if a tool such as Poetry locks the project for all Pythons that it allows. Then the oldest Python
            decides.
    """

    groups: Dict[Group, Dict[str, List[str]]] = field(default_factory=dict)
    locks: bool = False

    def add(self, name: str, specifier: str, group: Group = ()) -> bool:
        """Add a requirement. Return False if it is too long, or if the package has too many requirements."""
        if len(specifier) > MAX_LENGTH:
            return False
        specs = self.groups.setdefault(() if name == "python" else group, {}).setdefault(name, [])
        if specifier not in specs:
            specs.append(specifier)
        return len(specs) <= MAX_SPECS

    def environments(self, group: Group) -> Iterator[Dict[str, str]]:
        """Yield the possible environments: first those of the group alone, then those of the group with another one."""
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
        """True if the file excludes the needed versions of one of these packages.

        Args:
            needed: requirements such as ``"torch>=2.6"``.
            group: the group of the Lightning requirement.
            release: the bounds of Lightning's release. Requirements that contradict them are ignored, because
                installing Lightning replaces these packages.
        """
        return any(self._excludes(*split(text), group, release) for text in needed)

    def _excludes(self, name: str, needed: str, group: Group, release: Bounds) -> bool:
        specs = [
            spec
            for other, found in self.groups.items()
            if not any(part.startswith("[") for part in other if part not in group)  # the user may not install an extra
            for spec in found.get(name, ())
            if are_compatible(spec, release.get(name, ""))
        ]
        joined = _joined(specs)
        return bool(specs) and not any(are_compatible(spec, needed) for spec in (specs if joined is None else [joined]))


def _joined(specs: Sequence[str]) -> Optional[str]:
    """Join specifiers. Return ``None`` if no version satisfies all of them."""
    joined = ",".join(dict.fromkeys(filter(None, specs)))
    return joined if len(specs) < 2 or are_compatible(joined, "") else None


def _alternatives(specs: Mapping[str, Sequence[str]], locks: bool) -> Iterator[Dict[str, str]]:
    """Yield mappings from package to specifier. If specifiers of a package contradict each other, yield one for
    each."""
    joined = {name: _joined(found) for name, found in specs.items()}
    agreed = {name: spec for name, spec in joined.items() if spec is not None}
    if locks and agreed.get("python"):
        agreed["python"] = _oldest_python(agreed["python"])
    contradictory = [name for name in joined if name not in agreed]
    for name in contradictory:
        for spec in specs[name]:
            yield {**agreed, name: spec}
    if not contradictory:
        yield agreed


def _oldest_python(spec: str) -> str:
    return next(python_minors(spec), "") or spec


def python_minors(spec: str) -> Iterator[str]:
    """Yield the minor versions that a specifier allows, oldest first: ``"==3.8.*"``, ``"==3.9.*"``."""
    for minor in range(5, 30):
        if are_compatible(spec, f"==3.{minor}.*"):
            yield f"==3.{minor}.*"


@lru_cache(maxsize=10_000)
def are_compatible(spec: str, other: str) -> bool:
    """True if a version satisfies both specifiers. Tries the ends of the ranges and the versions next to them."""
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
