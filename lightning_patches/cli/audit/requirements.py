"""Parse requirements in the syntax of pip, Poetry and conda."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Iterable, List, Optional, Tuple

from lightning_patches.cli import _files
from lightning_patches.engine import fingerprints

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_NAMED = re.compile(r"(?:pytorch[-_.]lightning|lightning(?:[-_.]fabric)?)(?![\w-]|/|\.\w)", re.IGNORECASE)
_LONGEST = 500
"""Longest version constraint that is parsed, in characters."""


def starts_with_lightning(text: str) -> bool:
    """True if a text begins with the name of a distribution of Lightning."""
    return _NAMED.match(text) is not None


@lru_cache(maxsize=1000)
def parse_requirement(text: str) -> Optional[Requirement]:
    """Parse a requirement in pip's syntax. Return ``None`` for other texts.

    A URL that names a release (a wheel, an sdist, or a tag in git) becomes a requirement of that release.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    text = text[: _files.MAX_LINE]
    try:
        found = Requirement(text)
        if found.url is None:
            return found
        pinned = _from_address(found.url)
        marker = f" ; {found.marker}" if found.marker else ""
        return Requirement(pinned + marker) if pinned and Requirement(pinned).url is None else found
    except (InvalidRequirement, RecursionError):
        pinned = _from_address(text)
    try:
        return Requirement(pinned) if pinned else None
    except InvalidRequirement:
        return None


def _from_address(text: str) -> str:
    """Return the requirement for a URL or path.

    It is ``name==release``, ``name @ URL`` if the release is unknown, or "" if the name is unknown.
    """
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
    from packaging.version import InvalidVersion, Version

    address, _, fragment = text.partition("#")
    if not address or len(address.split()) != 1:
        return ""
    file = address.partition("?")[0].replace("\\", "/").rpartition("/")[2]
    if file.endswith((".whl", ".tar.gz", ".zip")):
        try:
            name, version = parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
            return f"{name}=={version}"
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            return ""
    if not address.startswith("git+") or "://" not in address:
        return ""
    repository, _, tag = address.partition("://")[2].partition("/")[2].partition("@")
    repository = repository.rstrip("/").rpartition("/")[2]
    egg = next((part[4:] for part in fragment.split("&") if part.startswith("egg=")), "")
    named = egg.partition("[")[0] or (repository[:-4] if repository.endswith(".git") else repository)
    if re.fullmatch(r"v?\d+\.\d+[\w.]*", tag):
        try:
            return f"{named}=={Version(tag)}"
        except InvalidVersion:
            pass
    return f"{named} @ {address}" if named else ""


def canonical_name(requirement: Requirement) -> str:
    """Return the normalized name of a requirement."""
    from packaging.utils import canonicalize_name

    return str(canonicalize_name(requirement.name))


_ANY_NAME = re.compile(r"(?<![\w.-])(?:pytorch[-_.]lightning|lightning(?:[-_.]fabric)?)(?!\w|-(?!\d))", re.IGNORECASE)


def lines_of(lines: Iterable[str]) -> Iterable[Tuple[int, str, str]]:
    """Yield the lines that name a distribution of Lightning: the number from 1, the normalized name, and the line."""
    for number, line in enumerate(lines, 1):
        for name in {re.sub(r"[-_.]+", "-", name).lower() for name in _ANY_NAME.findall(line)}:
            yield number, name, line


class Lines:
    """Finds the lines of requirements in a file whose parser does not report them."""

    def __init__(self, text: str) -> None:
        self._named: List[Tuple[int, str, str]] = list(lines_of(_files.lines(text)))

    def find(self, name: str, after: int, written: str) -> int:
        """Return the number of a line.

        Args:
            name: the distribution that the line names.
            after: the number of the first line to search.
            written: other text of the line. If no line has it, the first line with the name is returned.
        """
        found = [(number, line) for number, named, line in self._named if named == name and number >= after]
        exact = [number for number, line in found if written in line]
        return next(iter(exact), found[0][0] if found else after)


def applies(requirement: Requirement, python: str = "") -> bool:
    """True if the marker of a requirement is true on this machine.

    Args:
        requirement: the requirement.
        python: the minor version of Python, ``"3.8"``; "" for the running one.
    """
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName

    environment = {"extra": ""}
    if python:
        environment.update(python_version=python, python_full_version=f"{python}.99")
    try:
        return requirement.marker is None or requirement.marker.evaluate(environment)
    except (UndefinedComparison, UndefinedEnvironmentName, RecursionError):
        return True


def specifier(text: str, name: str = "") -> str:
    """Translate a version constraint of Poetry or conda to pip's syntax: ``"^2.2"`` becomes ``">=2.2,<3"``.

    A constraint may have alternatives (``"2.1.*|2.2.*"``). For Lightning, the result is the alternative that allows the
    newest release. For other packages, it is "" (no constraint).

    Args:
        text: the constraint.
        name: the package.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    found = [_clauses(part) for part in text[:_LONGEST].replace("||", "|").split("|")]
    if len(found) == 1:
        return found[0]
    if not starts_with_lightning(name):
        return ""

    releases = [*fingerprints.older_releases(), *fingerprints.known_releases()]

    def newest(spec: str) -> int:
        try:
            return max((releases.index(one) for one in SpecifierSet(spec).filter(releases)), default=-1)
        except InvalidSpecifier:
            return -2

    return max(found, key=newest)


def _clauses(text: str) -> str:
    parts = []
    for operator, version in re.findall(r"([<>=!~^]*)\s*([^\s,<>=!~^]+)", text):
        if version in ("*", "x"):
            continue
        bare = version[:-2] if version.endswith(".*") else version
        numbers = re.match(r"(\d+)(?:\.(\d+))?", version)
        if operator == "^" and numbers:  # the first number that is not 0 must stay the same
            same = re.match(r"(?:0\.)*", bare)
            first = re.match(r"\d+", bare[same.end() :]) if same else None
            parts.append(f">={bare},<{same[0]}{int(first[0]) + 1}" if same and first else f">={bare}")
        elif operator == "~" and numbers:
            after = f"{numbers[1]}.{int(numbers[2]) + 1}" if numbers[2] else str(int(numbers[1]) + 1)
            parts.append(f">={version},<{after}")
        elif operator == "=":  # conda's "=2.1" allows all versions that begin with 2.1
            parts.append(f"=={bare}.*" if bare != version or bare.count(".") < 2 else f"=={bare}")
        elif operator in ("<", ">", "<=", ">="):
            parts.append(operator + bare)
        else:
            parts.append((operator or "==") + version)
    return ",".join(parts)


def conda_spec(text: str) -> str:
    """Translate conda's ``channel::name=2.2.5=build`` to pip's syntax.

    A single ``=`` without a build allows all versions that start with the number.
    """
    text = text.strip()[: _files.MAX_LINE]
    found = re.match(r"[\w.-]+", text.rpartition("::")[2])
    if found is None:
        return text
    name, version = found[0], text.rpartition("::")[2][found.end() :].strip()
    if version.startswith("["):
        inside = re.search(r"version\s?=\s?['\"]([^'\"]*)['\"]", version)
        return name + specifier(inside[1] if inside else "", name)
    exact = re.fullmatch(r"={1,2}\s*([\w.!+*]+)=\S+", version)
    return f"{name}=={exact[1]}" if exact else name + specifier(version, name)
