"""Find the requirements of Lightning in directories, in files, and on the command line."""

from __future__ import annotations

import difflib
import itertools
import os
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.audit import collect, directories, requirements
from lightning_patches.cli.audit.collect import Collected, Gaps, LightningRequirement
from lightning_patches.cli.audit.sources.items import Gap, Kind, Place
from lightning_patches.cli.audit.sources.readers import READ, is_dockerfile, is_read_if_named
from lightning_patches.cli.audit.sources.workflow import checkout_of
from lightning_patches.known.releases import DISTRIBUTIONS

_LOCKED = ("pyproject.toml", "pipfile", "pixi.toml")
"""Files whose requirements are ignored if the same directory has a lock file."""
MAX_SKIPPED = 20
"""Most unread files and directories that are named."""


class Found(NamedTuple):
    """A requirement of Lightning in a project.

    Args:
        requirement: the requirement.
        collected: the other requirements of the same file.
        has_patches: True if the project uses the patches.
    """

    requirement: LightningRequirement
    collected: Collected
    has_patches: bool = False


@dataclass
class Project:
    """The requirements of a directory, or of the files and texts of one command line."""

    found: list[Found] = field(default_factory=list)
    gaps: Gaps = field(default_factory=Gaps)


def read_directory(directory: str) -> Project:
    """Find the requirements in all files of a directory. Other files with Lightning are gaps.

    Raises:
        UsageError: the directory has no supported file.
    """
    listing = directories.list_files(directory)
    files = _read_files(listing, Place(directory))
    has_patches = directories.imports_patches(listing) or any(file.has_patches for file in files.values())
    found = [Found(one, file, has_patches) for file in files.values() for one in file.found]
    gaps = Gaps()
    for gap in itertools.chain.from_iterable(file.gaps for file in files.values()):
        if not (gap.kind is Kind.NOT_A_REQUIREMENT or (found and gap.kind in (Kind.NO_RELEASE, Kind.FOREIGN))):
            gaps.add(gap)
    for text in listing.skipped[:MAX_SKIPPED]:
        gaps.add(Gap("", text))
    for path in listing.outside:
        gaps.add(Gap(path, "is a link that leads out of the project", Kind.NOTE))
    if not found and not gaps.trouble:
        named = {path for path, file in files.items() if file.gaps.skipped}
        for gap in directories.mentions(path for path in (*listing.files, *listing.others) if path not in named):
            gaps.add(gap)
    if not files and not len(gaps):
        raise UsageError(f"{directory} has no file that `audit` reads. It reads {READ}.")
    return Project(_without_locked(found), gaps)


def _read_files(listing: directories.Listing, place: Place) -> dict[str, Collected]:
    budget = collect.Budget()
    files = {path: _collect(path, place, budget) for path in listing.files}
    for path in listing.others:
        if is_read_if_named(path, directories.peek(path)):
            file = _collect(path, place, budget)
            if file.found or not file.gaps.trouble:
                files[path] = file
    return files


def _collect(path: str, place: Place, budget: collect.Budget) -> Collected:
    # A Dockerfile does not name its build context: try its directory and the project's directory.
    contexts = ("", place.root) if is_dockerfile(path) else ("",)
    return min((collect.collect(path, place, context, budget) for context in contexts), key=lambda one: len(one.gaps))


def _without_locked(found: list[Found]) -> list[Found]:
    """Drop the requirements that a lock file in the same directory overrides."""

    def where(one: Found) -> tuple[str, str]:
        return os.path.dirname(one.requirement.file), one.requirement.distribution

    locked = {where(one) for one in found if one.requirement.is_locked}
    return [
        one
        for one in found
        if where(one) not in locked or os.path.basename(one.requirement.file).lower() not in _LOCKED
    ]


def read_command_line(specs: list[str], paths: list[str], context: str) -> Project:
    """Find the requirements on the command line.

    Args:
        specs: requirements.
        paths: files.
        context: for a Dockerfile, the build context of ``docker build``; "" for the directory of the file.

    Raises:
        UsageError: a spec is not a requirement of Lightning, or a file cannot be read or parsed.
    """
    project = Project([Found(_parse(spec), Collected()) for spec in specs])
    for path in paths:
        collected = collect_file(path, context)
        for gap in collected.gaps:
            if gap.kind in (Kind.SKIPPED, Kind.NO_RELEASE):
                project.gaps.add(gap)
        has_patches = collected.has_patches
        if collected.found and not has_patches:
            top = checkout_of(path) or os.path.dirname(path) or "."
            has_patches = directories.imports_patches(directories.list_files(top, directories.SCRIPTS_DEPTH))
        project.found += [Found(one, collected, has_patches) for one in collected.found]
    return project


def collect_file(path: str, context: str = "") -> Collected:
    """Collect the requirements of a file that the user names.

    Raises:
        UsageError: the file cannot be read or parsed, or it is unclear if it requires Lightning.
    """
    collected = collect.collect(path, Place(_project_of(path)), context)
    gaps = collected.gaps
    if gaps.trouble:
        raise UsageError(gaps.trouble[0])
    reasons = [*gaps.skipped, *gaps.unclear]
    if not collected.found and reasons:
        raise UsageError(f"{reasons[0]}, so it is unknown if Lightning is required.")
    return collected


def _project_of(path: str) -> str:
    """Return the project's directory for a file. Files outside of it are not read.

    It is the checkout for a workflow. For other files, it is the nearest directory with a ``.git``, or else the
    directory of the file. The user's home does not count.
    """
    checkout = checkout_of(path)
    if checkout is not None:
        return checkout
    directory = os.path.dirname(path) or "."
    above = os.path.realpath(directory)
    home = os.path.realpath(os.path.expanduser("~"))
    while above not in (home, os.path.dirname(above)):
        if os.path.exists(os.path.join(above, ".git")):
            return above
        above = os.path.dirname(above)
    return directory


def _parse(spec: str) -> LightningRequirement:
    requirement = requirements.parse_requirement(spec) or requirements.parse_requirement(requirements.conda_spec(spec))
    if requirement is None:
        missing = f"There is no file {spec!r}, and it" if _may_be_a_file(spec) else repr(spec)
        raise UsageError(f"{missing} is not a requirement such as lightning==2.2.5.")
    if requirements.canonical_name(requirement) not in DISTRIBUTIONS:
        raise UsageError(_not_lightning(spec))
    if not requirements.applies(requirement):
        raise UsageError(f"{spec!r} does not apply here: its marker is for another Python or system.")
    return LightningRequirement(requirement)


def _not_lightning(spec: str) -> str:
    if re.fullmatch(r"\d+(?:\.\w+)+", spec):
        return f"{spec!r} has no package name. Did you mean lightning=={spec}?"
    name = re.split(r"[^\w.-]", spec)[0]
    close = difflib.get_close_matches(name.lower(), DISTRIBUTIONS, n=1)
    missing = f"there is no file {spec!r}, and it" if _may_be_a_file(spec) else repr(spec)
    if close and not re.search(r"\.[a-z]\w*$", spec):
        return f"{missing} is not a requirement of Lightning. Did you mean {spec.replace(name, close[0], 1)}?"
    return f"{missing} is not a requirement of {', '.join(DISTRIBUTIONS)}."


def _may_be_a_file(spec: str) -> bool:
    return re.fullmatch(r"[\w. -]+", spec) is not None
