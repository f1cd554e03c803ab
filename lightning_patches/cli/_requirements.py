"""Requirements of Lightning: from what pip, Poetry and conda write to the release that is meant."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Optional

from lightning_patches.cli import UsageError, _files
from lightning_patches.engine import distributions, fingerprints

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NAMES = ("lightning", "pytorch-lightning", "lightning-fabric")
"""The distributions of Lightning."""
_FIRST = {"lightning": "1.8.0", "pytorch-lightning": "1.5.0", "lightning-fabric": "1.9.0"}
"""The first of their releases that is known here."""
_PYTHONS = (("2.6.1", ">=3.10"), ("2.5.0", ">=3.9"), ("2.0.0", ">=3.8"))
"""Release, newest first, and the Python that it and those after it need, as their metadata say."""
_NAMED = re.compile(r"(?:pytorch[-_.]lightning|lightning(?:[-_.]fabric)?)(?![\w-]|/|\.\w)", re.IGNORECASE)
_LONGEST = 500
"""Characters of a version constraint."""
_ALIASES = {"pytorch": "torch", "pytorch-gpu": "torch"}
"""conda's names for what pip calls otherwise."""


class Found(NamedTuple):
    """One requirement of a Lightning distribution.

    Args:
        requirement: what is asked for.
        file: where it stands, "" for the command line.
        line: on which line of that file, from 1.
        locked: a lock file: all that is installed is named in it.
    """

    requirement: Requirement
    file: str = ""
    line: int = 0
    locked: bool = False


@dataclass
class Asked:
    """What a file asks for, with the files that it includes.

    Args:
        found: the Lightnings.
        others: the specifiers of what is asked for besides, and of Python, by canonical name.
        unclear: what could not be understood, each the first half of a sentence.
        has_patches: it asks for lightning-patches, or starts a program with them.
        read: the files that were read, as they really are.
    """

    found: list[Found] = field(default_factory=list)
    others: dict[str, list[str]] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)
    has_patches: bool = False
    read: set[str] = field(default_factory=set)

    def add(self, text: str, place: str, file: str, line: int = 1, locked: bool = False) -> bool:
        """Take a requirement as pip writes it; whether it is one.

        Raises:
            UsageError: it names Lightning, and is none.
        """
        requirement = parse(text)
        if requirement is None:
            if _NAMED.match(text):
                raise UsageError(
                    f"{place}: {text[:200]!r} cannot be understood. Give it with --requirement, as lightning==2.2.5."
                )
            return False
        if not applies(requirement):
            return True
        name = canonical(requirement)
        if name in NAMES:
            self.found.append(Found(requirement, file, line, locked))
        elif name == "lightning-patches":
            self.has_patches = True
        else:
            self.others.setdefault(_ALIASES.get(name, name), []).append(str(requirement.specifier))
        return True

    def put_lines(self, since: int, file: str, lines: list[str], before: int = 0) -> None:
        """Give what was found in a file the line that first names it.

        Args:
            since: how much was found before that.
            file: the file.
            lines: of it.
            before: how many lines come before these.
        """
        where = lines_of(lines, before)
        for index, one in enumerate(self.found[since:], since):
            if one.file == file:
                self.found[index] = one._replace(line=where.get(canonical(one.requirement), one.line))

    def excludes(self, needed: tuple[str, ...]) -> bool:
        """Whether what is asked for besides keeps one of the needed packages out, in the version that is needed."""
        return any(self._excludes(text) for text in needed)

    def _excludes(self, text: str) -> bool:
        needed = parse(text)
        assert needed is not None
        specs = self.others.get(needed.name, [])
        return bool(specs) and not any(_may_be_both(spec, str(needed.specifier)) for spec in specs)


def _may_be_both(spec: str, other: str) -> bool:
    """Whether some version is in both. Where there is one, there is one at the lower end of a range, or just above."""
    from packaging.specifiers import SpecifierSet

    versions = re.findall(r"\d+(?:\.\d+)*(?:(?:a|b|rc|\.dev)\d+)?(?:\+[\w.]+)?", f"{spec} {other}")
    candidates = ["0", *versions, *(f"{version.partition('+')[0]}.post1" for version in versions)]
    both = SpecifierSet(f"{spec},{other}" if spec else other)
    return any(both.contains(candidate, prereleases=True) for candidate in candidates)


def parse(text: str) -> Optional[Requirement]:
    """A requirement as pip takes it, ``None`` if ``text`` is not one.

    An address that tells the release, of a wheel, of an sdist or of a release's tag in git, is taken as that release.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    text = text[: _files.MAX_LINE]
    try:
        found = Requirement(text)
        if found.url is None:
            return found
        told = _from_address(found.url)
        marker = f" ; {found.marker}" if found.marker else ""
        return Requirement(told + marker) if told and Requirement(told).url is None else found
    except (InvalidRequirement, RecursionError):
        told = _from_address(text)
    try:
        return Requirement(told) if told else None
    except InvalidRequirement:
        return None


def _from_address(text: str) -> str:
    """What is at an address or path as a requirement, ``name @ address`` where its release is not told; "" if neither
    its name is."""
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


def canonical(requirement: Requirement) -> str:
    """The name of what is required, as everybody writes it."""
    from packaging.utils import canonicalize_name

    return str(canonicalize_name(requirement.name))


_ANY_NAME = re.compile(r"(?<![\w.-])(?:pytorch[-_.]lightning|lightning(?:[-_.]fabric)?)(?!\w|-(?!\d))", re.IGNORECASE)


def lines_of(lines: list[str], before: int = 0) -> dict[str, int]:
    """Distribution -> number of the first line that names it. Lines count from 1, after ``before`` others."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines, before + 1):
        for name in _ANY_NAME.findall(line):
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), number)
    return found


def distribution(requirement: Requirement) -> Optional[str]:
    """The Lightning distribution that is required here; ``None`` for anything else."""
    name = canonical(requirement)
    return name if name in NAMES and applies(requirement) else None


def applies(requirement: Requirement) -> bool:
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName

    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    except (UndefinedComparison, UndefinedEnvironmentName, RecursionError):
        return True


def known(distribution: str) -> list[str]:
    """The releases of a distribution that are known here, oldest first; those that were compromised are not among
    them."""
    from packaging.version import Version

    first = Version(_FIRST[distribution])
    return [
        release
        for release in (*fingerprints.older_releases(), *fingerprints.known_releases())
        if Version(release) >= first
    ]


class Release(NamedTuple):
    """What a requirement comes to.

    Args:
        version: of the release that pip takes, as far as it is known here; ``None`` where the requirement does not
            tell it.
        known: the release is known here.
        note: what the reader has to know, "" for nothing.
    """

    version: Optional[str]
    known: bool
    note: str = ""


def resolve(requirement: Requirement, asked: Optional[Asked] = None) -> Release:
    """The release that a requirement of Lightning comes to.

    Args:
        requirement: one of Lightning.
        asked: what is asked for besides.
    """
    if requirement.url:
        return Release(None, False, "it comes from an address or a directory: install it, and audit the environment")
    releases = known(canonical(requirement))
    matching = list(requirement.specifier.filter([*releases, *sorted(distributions.FORBIDDEN)]))
    all_known = f"{releases[0]} to {releases[-1]}"
    pinned = [s.version for s in requirement.specifier if s.operator in ("==", "===") and "*" not in s.version]
    if pinned:
        version = next((release for release in matching if is_same(release, pinned[0])), pinned[0])
        if is_known(requirement.name, version):
            return Release(version, True)
        return Release(version, False, f"the known releases are {all_known}")
    allowed = [release for release in releases if release in matching]
    if not allowed:
        return Release(None, False, f"no known release of Lightning ({all_known}) matches")
    runs = [release for release in allowed if asked is None or not asked.excludes(_python_of(release))]
    newest = (runs or allowed)[-1]
    why = " on the Python that is asked for" if runs and runs[-1] != allowed[-1] else ""
    return Release(newest, True, f"not pinned; {newest} is the newest known release that matches{why}")


def _python_of(release: str) -> tuple[str, ...]:
    from packaging.version import Version

    return tuple(f"python{needed}" for first, needed in _PYTHONS if Version(release) >= Version(first))[:1]


def is_known(distribution: str, version: str) -> bool:
    """Whether a release is one of those that patches and bugs were compared with. A local label does not matter."""
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion, Version

    try:
        public = Version(version).public
    except InvalidVersion:
        return False
    return public in distributions.FORBIDDEN or public in known(str(canonicalize_name(distribution)))


def is_same(release: str, version: str) -> bool:
    """Whether two numbers are of one release: 2.2 and 2.2.0 are."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(release) == Version(version)
    except InvalidVersion:
        return False


def specifier(text: str) -> str:
    """Poetry's and conda's version constraints as those of pip: ``"^2.2"`` is ``">=2.2,<3"``. Of alternatives it is
    the one that allows the newest release."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    found = [_clauses(part) for part in text[:_LONGEST].replace("||", "|").split("|")]
    if len(found) == 1:
        return found[0]

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
        if operator == "^" and numbers:
            parts.append(f">={version},<{int(numbers[1]) + 1}")
        elif operator == "~" and numbers:
            after = f"{numbers[1]}.{int(numbers[2]) + 1}" if numbers[2] else str(int(numbers[1]) + 1)
            parts.append(f">={version},<{after}")
        elif operator == "=":  # of conda: what begins so
            parts.append(f"=={bare}.*" if bare != version or bare.count(".") < 2 else f"=={bare}")
        elif operator in ("<", ">", "<=", ">="):
            parts.append(operator + bare)
        else:
            parts.append((operator or "==") + version)
    return ",".join(parts)


def conda_spec(text: str) -> str:
    """conda's ``channel::name=2.2.5=build`` as pip says it. One ``=`` allows what begins so; a build is exact."""
    text = text.strip()[: _files.MAX_LINE]
    found = re.match(r"[\w.-]+", text.rpartition("::")[2])
    if found is None:
        return text
    name, version = found[0], text.rpartition("::")[2][found.end() :].strip()
    if version.startswith("["):
        inside = re.search(r"version\s?=\s?['\"]([^'\"]*)['\"]", version)
        return name + specifier(inside[1] if inside else "")
    exact = re.fullmatch(r"={1,2}\s*([\w.!+]+)=\S+", version)
    return f"{name}=={exact[1]}" if exact else name + specifier(version)
