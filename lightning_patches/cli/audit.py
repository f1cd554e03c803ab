"""Which known bugs the installed Lightning has, or one that is about to be installed, and which the patches mend.

Nothing is imported to find out. Without options the Lightnings of this environment are looked at: their version, and
the code that each patch is for. With --requirement or -r only the release's number is looked at, also of releases
that are not installed. Of a range, it is the newest known release in it, which is what pip takes.

With --json, one object; keys are only ever added:
  schema     1
  toggle     {value (null: not set), selected: [patch names]}
  audited    [{requirement (null: installed), distribution, version (null: cannot be told), notes: [text], bugs}]
  fail_on    the option
  ok         the exit status is 0
A bug is {name, title, group, harm, affected, fixed_in (null: never), drop_at, move_to, cover, covered, reason, issues,
pull_requests, advisories}. cover is "default" or "opt-in" (how the patch is had) or "none" (there is no patch); covered
says if it will be applied with the LIGHTNING_PATCHES that is set now, and reason why not.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

from lightning_patches import catalog, distributions, fingerprints, gate, toggle
from lightning_patches.cli import NOT_APPLIED, OK, UsageError, _output, status
from lightning_patches.known_bugs import KNOWN_BUGS, KnownBug
from lightning_patches.patch import GROUPS, Patch

if TYPE_CHECKING:
    from packaging.requirements import Requirement

HELP = "which known bugs this environment has, or a requirement such as lightning==2.2.5"

FAIL_ON = ("any", "opt-in", "uncovered", "never")


@dataclass(frozen=True)
class Bug:
    """A known bug in an audited release; ``record`` is a :class:`Patch` or, where there is none, a KnownBug."""

    record: Any
    cover: str
    covered: bool
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        record = self.record
        is_patch = isinstance(record, Patch)
        return {
            "name": record.name,
            "title": record.title,
            "group": record.group,
            "harm": record.impact.summary if is_patch else record.harm,
            "affected": list(record.affected),
            "fixed_in": record.fixed_in,
            "drop_at": record.fixed_in if is_patch else None,
            "move_to": record.fixed_in if is_patch else record.move_to,
            "cover": self.cover,
            "covered": self.covered,
            "reason": self.reason,
            "issues": list(record.upstream.issues if is_patch else record.issues),
            "pull_requests": list(record.upstream.pull_requests if is_patch else record.pull_requests),
            "advisories": [] if is_patch else list(record.advisories),
        }


@dataclass
class Audited:
    """One release and its known bugs; ``version`` is ``None`` where the requirement does not tell it."""

    distribution: str
    version: Optional[str]
    requirement: Optional[str] = None
    notes: list[str] = field(default_factory=list)
    bugs: list[Bug] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--requirement",
        action="append",
        default=[],
        metavar="SPEC",
        help="a release that need not be installed, such as lightning==2.2.5; may be repeated",
    )
    parser.add_argument(
        "-r",
        "--requirements-file",
        action="append",
        default=[],
        metavar="FILE",
        help="a file of requirements, in which all but Lightning is passed over; may be repeated",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="uncovered",
        help="which bugs end with status 1: any; opt-in: those that LIGHTNING_PATCHES as it is set now does not "
        "select; uncovered: of these only the ones that no opt-in patch mends (the default); never",
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="BUG", help="a bug that is known and accepted; may be repeated"
    )
    parser.add_argument("--group", choices=GROUPS, help="only the bugs of this group")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    setting = status.read_toggle()
    if setting.selection is None:
        raise UsageError(str(setting.error))
    names = {patch.name for patch in catalog.all_patches()} | {bug.name for bug in KNOWN_BUGS}
    for name in args.ignore:
        if name not in names:
            raise UsageError(f"there is no bug {name!r} to ignore; `lightning-patches audit` shows their names.")
    if args.requirement or args.requirements_file:
        audited = audit_requirements(args.requirement, args.requirements_file, setting.selection)
    else:
        audited = audit_installed(setting.selection)
    for one in audited:
        one.bugs = [b for b in one.bugs if b.record.name not in args.ignore and args.group in (None, b.record.group)]
        one.bugs.sort(key=lambda bug: (bug.covered, GROUPS.index(bug.record.group)))
    ended = NOT_APPLIED if any(fails(bug, args.fail_on) for one in audited for bug in one.bugs) else OK
    if args.json:
        _output.write_json(
            {
                "schema": 1,
                "toggle": {"value": setting.value, "selected": sorted(setting.selection.names)},
                "audited": [{**vars(one), "bugs": [bug.as_dict() for bug in one.bugs]} for one in audited],
                "fail_on": args.fail_on,
                "ok": ended == OK,
            }
        )
    else:
        _write(audited, setting)
    return ended


def fails(bug: Bug, fail_on: str) -> bool:
    """Whether a bug ends the command with status 1."""
    if fail_on == "uncovered":
        return not bug.covered and bug.cover != "opt-in"
    return fail_on == "any" or (fail_on == "opt-in" and not bug.covered)


def audit_installed(selection: toggle.Selection) -> list[Audited]:
    """The Lightnings of this environment. What decides is the code that is installed, not the number alone."""
    audited = []
    for one in status.find_installed():
        found = Audited(one.distribution, one.version, notes=[one.note] if one.note else [])
        for bug in KNOWN_BUGS:
            hit = one.forbidden if bug.name == "compromised-release" else has(bug, one.distribution, one.version)
            if hit:
                found.bugs.append(Bug(bug, "none", False, bug.why_not))
        namespace = distributions.find(one.namespace)
        if namespace is not None and not one.forbidden:
            own = {name: part for name, part in namespace.parts.items() if part.distribution == one.distribution}
            found.bugs += _bugs_in(distributions.Namespace(namespace.name, own), selection)
        audited.append(found)
    return audited


def _bugs_in(namespace: distributions.Namespace, selection: toggle.Selection) -> Iterator[Bug]:
    for patch in _mending():
        decision = gate.decide(patch, namespace)
        if decision.verdict == "pending":
            yield _selected(patch, selection)
        elif decision.verdict == "drifted":
            versions = {part.version for part in namespace.parts.values()}
            if any(_in_ranges(version, patch.affected) for version in versions):
                yield Bug(patch, _cover(patch), False, decision.reason)


def _mending() -> list[Patch]:
    """The patches but for those that only warn of a bug, which is among the known ones."""
    return [patch for patch in catalog.all_patches() if not patch.warns_of]


def audit_requirements(specs: list[str], files: list[str], selection: toggle.Selection) -> list[Audited]:
    """Releases by their number.

    Raises:
        UsageError: a spec is none, or not of Lightning; a file cannot be read.
    """
    requirements = []
    for spec in specs:
        requirement = _parse(spec)
        if requirement is None:
            raise UsageError(f"{spec!r} is not a requirement such as lightning==2.2.5.")
        if _distribution(requirement) is None:
            raise UsageError(f"{spec!r} is not a requirement of {', '.join(_SHIPS)}.")
        requirements.append(requirement)
    for path in files:
        requirements += [found for found in _read(path, set()) if _distribution(found) is not None]
    audited = [_audit(requirement, selection) for requirement in requirements]
    named = {one.distribution for one in audited}
    for one in audited:
        if one.distribution == "lightning" and "pytorch-lightning" not in named:
            one.notes.append(
                "installing lightning also installs pytorch-lightning, in its newest release unless something pins it"
            )
    return audited


_SHIPS = {
    "lightning": ("pytorch", "fabric"),
    "pytorch-lightning": ("pytorch", "fabric"),
    "lightning-fabric": ("fabric",),
}
"""Distribution -> the parts of upstream's source tree that it brings."""


def _audit(requirement: Requirement, selection: toggle.Selection) -> Audited:
    distribution = _distribution(requirement)
    assert distribution is not None
    found = Audited(distribution, None, str(requirement))
    if requirement.url:
        found.notes.append("the requirement is an address: install it, and audit the environment")
        return found
    known = fingerprints.known_releases()
    matching = list(requirement.specifier.filter([*known, *sorted(distributions.FORBIDDEN)]))
    pinned = [s.version for s in requirement.specifier if s.operator in ("==", "===") and "*" not in s.version]
    if pinned:
        found.version = pinned[0]
        if found.version not in matching:
            found.notes.append(f"{found.version} is not a known release of Lightning 2.x; told by its number alone")
    else:
        allowed = [release for release in known if release in matching]
        if not allowed:
            found.notes.append(f"no known release of Lightning 2.x ({known[0]} to {known[-1]}) matches")
            return found
        found.version = allowed[-1]
        found.notes.append(f"not pinned; {allowed[-1]} is the newest known release that matches")
    for bug in KNOWN_BUGS:
        if has(bug, distribution, found.version):
            found.bugs.append(Bug(bug, "none", False, bug.why_not))
    if found.version not in distributions.FORBIDDEN:
        for patch in _mending():
            parts = {re.split("[.:]", location)[0] for location in patch.locations}
            if parts & set(_SHIPS[distribution]) and _in_ranges(found.version, patch.affected):
                found.bugs.append(_selected(patch, selection))
    return found


def _selected(patch: Patch, selection: toggle.Selection) -> Bug:
    if patch.name in selection.names:
        return Bug(patch, _cover(patch), True)
    if not patch.default:
        return Bug(patch, "opt-in", False, f"opt-in: LIGHTNING_PATCHES=default,{patch.name} adds it")
    return Bug(patch, "default", False, f"LIGHTNING_PATCHES={selection.spec} leaves it out")


def _cover(patch: Patch) -> str:
    return "default" if patch.default else "opt-in"


def has(bug: KnownBug, distribution: str, version: str) -> bool:
    """Whether a release of a distribution has a bug, by its number."""
    return (not bug.distributions or distribution in bug.distributions) and _in_ranges(version, bug.affected)


def _in_ranges(version: str, ranges: tuple[str, ...]) -> bool:
    from packaging.version import InvalidVersion

    try:
        return gate.in_ranges(version, ranges)
    except InvalidVersion:
        return False


def _distribution(requirement: Requirement) -> Optional[str]:
    """The Lightning distribution that is required here; ``None`` for anything else."""
    from packaging.utils import canonicalize_name

    name = canonicalize_name(requirement.name)
    if name not in _SHIPS or (requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})):
        return None
    return name


def _parse(text: str) -> Optional[Requirement]:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _read(path: str, seen: set[str]) -> Iterator[Requirement]:
    """The requirements of a file, and of those that it includes. Lines that are none are passed over, as paths and
    pip's options are."""
    real = os.path.realpath(path)
    if real in seen:
        return
    seen.add(real)
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).strip()
        included = re.match(r"(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)$", line)
        if included:
            yield from _read(os.path.join(os.path.dirname(path), included[1]), seen)
            continue
        requirement = _parse(re.split(r"\s--", line)[0].strip())
        if requirement is not None:
            yield requirement


def _write(audited: list[Audited], setting: status.Toggle) -> None:
    if not audited:
        _output.write("There is no Lightning here: nothing to audit.")
        return
    for number, one in enumerate(audited):
        if number:
            _output.write()
        _output.write(_output.paragraph(_headline(one)))
        for note in one.notes:
            _output.write(_output.paragraph(f"note: {note}."))
        if one.bugs:
            _output.write()
            _output.write_table(
                ("BUG", "GROUP", "COVERED", "FIXED IN", "HARM"),
                [_row(bug) for bug in one.bugs],
                ["" if bug.covered else "bold" for bug in one.bugs],
            )
        for bug in one.bugs:
            if bug.cover == "none":
                _output.write()
                _output.write(
                    _output.paragraph(f"{bug.record.name}: no patch, {bug.reason}. Move to {bug.record.move_to}.")
                )
    _output.write()
    when = "is not set: the default set counts as applied" if setting.value is None else f"is {setting.value!r}"
    _output.write(
        _output.paragraph(
            f"{toggle.VARIABLE} {when}, in programs that `import lightning_patches`. `lightning-patches show BUG` "
            "tells more of those that are patched."
        )
    )


def _headline(one: Audited) -> str:
    what = f"{one.distribution} {one.version}" if one.version else str(one.requirement)
    if one.version is None:
        return f"{what}: cannot be told."
    counts = [
        (sum(bug.covered for bug in one.bugs), "mended by the patches"),
        (sum(not bug.covered and bug.cover == "opt-in" for bug in one.bugs), "by an opt-in patch"),
        (sum(not bug.covered and bug.cover != "opt-in" for bug in one.bugs), "not mended"),
    ]
    total = f"{len(one.bugs)} known bug{'s' if len(one.bugs) != 1 else ''}"
    parts = [f"{count} {words}" for count, words in counts if count]
    return f"{what} has {total}" + (f": {', '.join(parts)}." if parts else ".")


def _row(bug: Bug) -> tuple[str, str, str, str, str]:
    data = bug.as_dict()
    covered = "yes" if bug.covered else "opt-in" if bug.cover == "opt-in" else "NO"
    return data["name"], data["group"], covered, data["fixed_in"] or "never", data["harm"]
