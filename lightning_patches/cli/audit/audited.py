"""Find the known bugs of the required or installed releases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from lightning_patches.cli import _output, autostart
from lightning_patches.cli.audit.projects import Found, Project, read_command_line
from lightning_patches.cli.audit.resolve import resolve
from lightning_patches.cli.audit.sources.items import Gap
from lightning_patches.engine import toggle
from lightning_patches.fork import wheel
from lightning_patches.known import bugs as known_bugs
from lightning_patches.known import figures, releases
from lightning_patches.known.bugs import Bug
from lightning_patches.known.installed import find_installed

MAX_AUDITED = 500
"""Most requirements that are audited in one project."""


@dataclass
class Audited:
    """One release and its known bugs.

    Args:
        distribution: ``"lightning"``, ``"pytorch-lightning"`` or ``"lightning-fabric"``.
        version: the release; ``None`` if it is unknown.
        requirement: the requirement; ``None`` for an installed release.
        file: the file with the requirement; "" for the command line.
        line: the line in that file.
        known: True if the bugs of the release are known.
        notes: notes for the reader, as sentences without their full stops.
        bugs: the known bugs of the release.
        has_patches: True if the project, or the environment, uses the patches.
        excluded: bugs of the release that can't occur with the versions of other packages.
    """

    distribution: str
    version: Optional[str]
    requirement: Optional[str] = None
    file: str = ""
    line: int = 0
    known: bool = True
    notes: list[str] = field(default_factory=list)
    bugs: list[Bug] = field(default_factory=list)
    has_patches: bool = False
    excluded: list[str] = field(default_factory=list)

    @property
    def figures(self) -> figures.Figures:
        return figures.count(self.bugs)

    @property
    def is_compromised(self) -> bool:
        return any(bug.record.name == "compromised-release" for bug in self.bugs)


def audit_installed(selection: toggle.Selection) -> list[Audited]:
    """Audit the Lightnings of this environment, by their code."""
    audited = []
    has_patches = bool(selection.spec and selection.names) and autostart.is_enabled()
    for installed in find_installed():
        one = Audited(installed.distribution, installed.version, has_patches=has_patches)
        one.notes += [installed.note] if installed.note else []
        one.known = releases.is_known(one.distribution, installed.version)
        one.bugs, one.excluded = known_bugs.bugs_of_installed(installed, selection)
        if one.excluded:
            one.notes.append(f"bugs that the other packages of this environment exclude: {', '.join(one.excluded)}")
        audited.append(one)
    return audited


def audit_requirements(specs: list[str], selection: toggle.Selection) -> list[Audited]:
    """Audit releases by their version numbers.

    Args:
        specs: requirements.
        selection: the selected patches.

    Raises:
        UsageError: a spec is not a requirement of Lightning.
    """
    return audit_project(read_command_line(specs, [], ""), selection)


def audit_project(project: Project, selection: toggle.Selection) -> list[Audited]:
    """Audit the requirements of a project. Equal requirements in the same line count once."""
    audited: dict[tuple[object, ...], Audited] = {}
    for found in project.found:
        one = _audit(found, selection)
        key = (one.file, one.line, one.requirement, one.version)
        if len(audited) >= MAX_AUDITED and key not in audited:
            project.gaps.add(Gap("", f"more than {MAX_AUDITED} requirements of Lightning: the others were skipped"))
            break
        audited.setdefault(key, one)
    locked = {found.requirement.file for found in project.found if found.requirement.is_locked}
    named = {one.distribution for one in audited.values()}
    for one in audited.values() if "pytorch-lightning" not in named else ():
        if one.known and one.distribution == "lightning" and one.file not in locked:
            one.notes.append("installing lightning also installs the newest pytorch-lightning, unless you pin it")
    return list(audited.values())


def _audit(found: Found, selection: toggle.Selection) -> Audited:
    requirement, pins = found.requirement.requirement, found.collected.pins
    distribution, group = found.requirement.distribution, found.requirement.group
    text = _output.shown(requirement.name if requirement.url else str(requirement))
    release = resolve(requirement, pins, group)
    version = _output.shown(release.version) if release.version else None
    one = Audited(distribution, version, text, found.requirement.file, found.requirement.line, release.known)
    one.has_patches = found.has_patches
    one.notes += [release.note] if release.note else []
    if release.version is None or not release.known:
        return one
    bounds = releases.bounds(distribution, release.version)
    for bug in known_bugs.bugs_of(distribution, release.version, selection):
        if pins.exclude(bug.record.only_with, group, bounds):
            one.excluded.append(bug.record.name)
        else:
            one.bugs.append(bug)
    if one.excluded:
        one.notes.append(f"bugs that the other requirements of the file exclude: {', '.join(one.excluded)}")
    if "+patches." in release.version:
        carried = wheel.carried_by(release.version)
        advice = "to see which patches the wheel contains, run `audit` in an environment with this wheel"
        one.notes.append(advice if carried is None else f"the wheel contains {len(carried)} patches")
    return one
