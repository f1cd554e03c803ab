"""List the known bugs of a Lightning that is installed or required, and which of them the patches fix.

  lightning-patches audit                      the Lightnings of this environment: their version and their code
  lightning-patches audit lightning==2.2.5     a release, by its number; it need not be installed
  lightning-patches audit uv.lock              what a project requires: requirements files of pip, pyproject.toml,
                                               uv.lock, poetry.lock, pdm.lock, pylock.toml, Pipfile, Pipfile.lock,
                                               environment.yml, conda-lock.yml, pixi.toml, pixi.lock, Dockerfiles,
                                               workflows of GitHub, notebooks
  lightning-patches audit .                    all of these files in a directory

Nothing is imported. A range counts as the release that an installer takes: the newest known one that the range and the
other requirements of the file allow. With torch==1.13.1, lightning>=2 is 2.2.5. If the other requirements leave several
releases open, the release is unknown. Nothing is said about the bugs of an unknown release, and the exit status is 3.
Bugs that torch, Python or another package of the same file excludes are not counted. The files of a Dockerfile are
those that COPY and ADD bring from the build context.

Files outside of the project are not read. The project is the directory that you give. For a file it is the checkout
(the nearest directory above with .git) or, without one, the directory of the file. No message quotes a line of a file,
except for a requirement of Lightning. A directory is searched without hidden directories (except for .github), virtual
environments, node_modules, site-packages, __pycache__, build and dist. Links are followed if they stay inside.
Everything else that was not read is listed, and the exit status is 3.

With --json, one object; keys are only ever added:
  schema     1
  toggle     {value (null: not set), selected: [patch names]}
  audited    [{requirement (null: installed), file, line, distribution, version (null: cannot be told), known (the
              release is known here), headline, do (advice), has_patches (the project uses the patches),
              excluded: [bugs that another package excludes], notes: [text], bugs, figures: {known, default, opt_in,
              unmended}, upstream: {patched, open, not patchable, nothing to patch, left out}}]
  unclear    [files that could not be parsed]
  skipped    [files that were not read, and why]
  ignore     [the bugs that end with status 1, for --ignore]
  fail_on    the option
  ok         the exit status is 0
A bug is {name, title, group, harm, affected, fixed_in (null: never), drop_at, move_to, cover, covered, mended, reason,
issues, pull_requests, advisories}. cover is "default" or "opt-in" (how the patch is enabled) or "none" (no patch);
mended (fixed) is "yes", "opt-in" (a patch that is off would fix it) or "no". covered is true if the patch will be
applied with the current LIGHTNING_PATCHES; otherwise reason says why not. upstream counts the upstream fixes since that
release, by their verdict here.

--format github writes annotations for a workflow of GitHub Actions, sarif a document for code scanning (with a
notification, and executionSuccessful false, where a release is not known), markdown a table for a summary or a comment.
All but JSON leave out the bugs that the patches fix, unless --all is given.

exit status:
  0  no bug of the kinds in --fail-on
  1  there are such bugs
  2  the command line is wrong, or a file cannot be read or parsed
  3  a release is unknown, or a file was not read, and there is no reason for status 1 or 2
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from lightning_patches import patches as catalogue
from lightning_patches.cli import (
    _audit_formats,
    _collect,
    _directories,
    _output,
    _projects,
    _requirements,
    _resolve,
    _toggle,
    autostart,
)
from lightning_patches.cli._exit_status import NOT_APPLIED, OK, UNKNOWN, USAGE, UsageError
from lightning_patches.cli._sources import Place
from lightning_patches.engine import gate, toggle
from lightning_patches.engine.installed import find_installed
from lightning_patches.fork import wheel
from lightning_patches.known import bugs, coverage, figures, records, releases
from lightning_patches.known.bugs import Bug
from lightning_patches.known.figures import Figures
from lightning_patches.known.unpatched import ADVICE, UNPATCHED, Unpatched
from lightning_patches.patch import GROUPS, Patch

HELP = "which known bugs this environment has, or a requirement such as lightning==2.2.5"

FAIL_ON = ("any", "opt-in", "uncovered", "never")
FORMATS = ("text", "json", "github", "markdown", "sarif")
MAX_AUDITED = 500
"""Requirements that one command looks up."""


def bug_as_dict(bug: Bug) -> dict[str, Any]:
    record = bug.record
    is_patch = isinstance(record, Patch)
    return {
        "name": record.name,
        "title": record.title,
        "group": record.group,
        "harm": record.impact.summary,
        "affected": list(record.affected),
        "fixed_in": record.fixed_in,
        "drop_at": record.fixed_in if is_patch else None,
        "move_to": record.move_to if isinstance(record, Unpatched) else record.fixed_in,
        "cover": bug.cover,
        "covered": bug.covered,
        "mended": bug.fixed,
        "reason": bug.reason,
        "issues": list(record.upstream.issues),
        "pull_requests": list(record.upstream.pull_requests),
        "advisories": list(record.advisories) if isinstance(record, Unpatched) else [],
    }


@dataclass
class Audited:
    """One release and its known bugs.

    Args:
        distribution: ``"lightning"``, ``"pytorch-lightning"`` or ``"lightning-fabric"``.
        version: ``None`` if the requirement does not determine it.
        requirement: the requirement; ``None`` for an installed release.
        file: the file with the requirement, "" for the command line.
        line: the line in that file.
        known: the patches and the known bugs were compared with this release.
        notes: notes for the reader.
        bugs: the known bugs of the release.
        has_patches: the project, or the environment, uses the patches.
        excluded: bugs of the release that another package of the same file excludes.
        do: advice.
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
    do: str = ""

    @property
    def figures(self) -> Figures:
        return figures.count(self.bugs)

    @property
    def counted(self) -> list[Bug]:
        """The bugs in the totals."""
        return [bug for bug in self.bugs if bug.is_counted]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="*",
        metavar="WHAT",
        help="a requirement such as lightning==2.2.5, a file that has some, or a directory; nothing: this environment",
    )
    parser.add_argument(
        "--requirement",
        action="append",
        default=[],
        metavar="SPEC",
        help="the same as WHAT; may be repeated",
    )
    parser.add_argument(
        "-r",
        "--requirements-file",
        action="append",
        default=[],
        metavar="FILE",
        help="the same as WHAT, for a file; may be repeated",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        metavar="WHICH",
        default="uncovered",
        help="which bugs end with status 1: any; opt-in: those that are not mended, as LIGHTNING_PATCHES is set now; "
        "uncovered: those that are not mended and that no opt-in patch would mend (the default); never",
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="BUG", help="a bug that is known and accepted; may be repeated"
    )
    parser.add_argument("--all", action="store_true", help="also list the bugs that the patches mend")
    parser.add_argument(
        "--context",
        default="",
        metavar="DIRECTORY",
        help="what `docker build` is given, from which COPY copies (default: the directory of the Dockerfile)",
    )
    parser.add_argument("--fixes", action="store_true", help="also list upstream's later fixes that have no patch")
    parser.add_argument(
        "--group", choices=GROUPS, metavar="GROUP", help=f"only the bugs of a group: {', '.join(GROUPS)}"
    )
    parser.add_argument(
        "--format", choices=FORMATS, metavar="FORMAT", default="text", help=f"{', '.join(FORMATS)} (default: text)"
    )
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")


def run(args: argparse.Namespace) -> int:
    setting = _toggle.read_toggle()
    if setting.selection is None:
        raise UsageError(str(setting.error))
    names = {patch.name for patch in catalogue.all_patches()} | {bug.name for bug in UNPATCHED}
    for name in args.ignore:
        if name not in names:
            raise UsageError(f"there is no bug {_output.cut(name)!r}; `lightning-patches audit` shows their names.")
    specs, files = [*args.requirement], [*args.requirements_file]
    for what in args.what:
        is_path = os.sep in what and "://" not in what and _requirements.parse(what) is None
        (files if is_path or os.path.exists(what) else specs).append(what)
    gaps = Gaps()
    if specs or files:
        directories = [path for path in files if os.path.isdir(path)]
        files = [path for path in files if path not in directories]
        audited = [one for path in directories for one in _audit_directory(path, setting.selection, gaps)]
        requirements = _requirements_of(specs)
        requirements += [one for path in files for one in _requirements_in(path, args.context, gaps)]
        audited += _audit_all(requirements, setting.selection, gaps)
    else:
        audited = audit_installed(setting.selection)
    for one in audited:
        one.bugs = [b for b in one.bugs if b.record.name not in args.ignore and args.group in (None, b.record.group)]
        one.bugs.sort(key=lambda bug: (bug.covered, GROUPS.index(bug.record.group)))
        one.do = advice(one)
    failing = {bug.record.name: None for one in audited for bug in one.bugs if fails(bug, args.fail_on)}
    ended = _exit_status(audited, gaps, args.fail_on)
    if args.format == "json":
        _output.write_json(
            {
                "toggle": {"value": setting.value, "selected": sorted(setting.selection.names)},
                "audited": [_as_dict(one) for one in audited],
                "unclear": [*gaps.trouble, *gaps.unclear],
                "skipped": gaps.skipped,
                "ignore": list(failing),
                "fail_on": args.fail_on,
                "ok": ended == OK,
            }
        )
        return ended
    accept = " ".join(f"--ignore {name}" for name in failing)
    if args.format == "text":
        _write(audited, setting, args, gaps)
        for text in (*gaps.trouble, *gaps.unclear):
            _output.write(_output.paragraph(f"not known: {text}."))
        for text in gaps.skipped:
            _output.write(_output.paragraph(f"not looked at: {text}."))
        if failing:
            _output.write()
            _output.write(_output.paragraph(f"To accept what ends with status 1, add `{accept}`."))
        return ended
    found = [_as_dict(one, args.all) for one in audited]
    written = _audit_formats.FORMATS[args.format](found, [*gaps.trouble, *gaps.skipped])
    if written:
        _output.write(written)
    if failing:
        _output.complain(f"To accept what ends with status 1, add {accept}")
    return ended


_LOCKED_BESIDE = ("pyproject.toml", "pipfile", "pixi.toml")
"""If there is a lock file in the same directory, its releases are the ones that are installed."""


@dataclass
class Gaps:
    """The files that an audit could not take into account. All are sentences without their full stops.

    Args:
        trouble: files that cannot be read or parsed.
        unclear: files that do not say if they require Lightning.
        skipped: files that were not read.
    """

    trouble: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass
class _Requirement:
    """A requirement of Lightning, with what its file says besides."""

    found: _collect.Found
    collected: _collect.Collected = field(default_factory=_collect.Collected)
    has_patches: bool = False


def _audit_directory(directory: str, selection: toggle.Selection, gaps: Gaps) -> list[Audited]:
    """Audit all files of a directory.

    Raises:
        UsageError: it has no such file.
    """
    listing = _directories.look_through(directory)
    if not listing.files and not listing.skipped:
        raise UsageError(f"{directory} has no file that `audit` reads. It reads {_projects.READ}.")
    place, budget = Place(directory), _collect.Budget()
    requirements: list[_Requirement] = []
    has_patches = _directories.imports_patches(listing)
    for path in listing.files:
        # No file names the build context of `docker build`.
        contexts = ("", directory) if _projects.is_dockerfile(path) else ("",)
        tried = [_collect.collect(path, place, context, budget) for context in contexts]
        collected = min(tried, key=lambda one: len(one.trouble) + len(one.unclear) + len(one.skipped))
        has_patches |= collected.has_patches
        requirements += [_Requirement(one, collected) for one in collected.found]
        gaps.trouble += _few(collected.trouble)
        gaps.skipped += _few(collected.skipped)
        gaps.unclear += _few(collected.unclear) if not collected.found else []
    named = {_requirements.canonical(one.found.requirement) for one in requirements}
    for name, text in _directories.unread_setups(listing):
        (gaps.unclear if name in named else gaps.skipped).append(text)
    gaps.skipped += _few(listing.skipped, 20)
    gaps.unclear += _few(listing.outside)
    locks = {_place_of(one) for one in requirements if one.found.is_locked}
    for one in requirements:
        one.has_patches = has_patches
    return _audit_all(
        [
            one
            for one in requirements
            if _place_of(one) not in locks or os.path.basename(one.found.file).lower() not in _LOCKED_BESIDE
        ],
        selection,
        gaps,
    )


def _place_of(one: _Requirement) -> tuple[str, str]:
    return os.path.dirname(one.found.file), _requirements.canonical(one.found.requirement)


def _exit_status(audited: list[Audited], gaps: Gaps, fail_on: str) -> int:
    if any(fails(bug, fail_on) for one in audited for bug in one.bugs):
        return NOT_APPLIED
    if gaps.trouble:
        return USAGE
    return UNKNOWN if fail_on != "never" and (gaps.skipped or not all(one.known for one in audited)) else OK


def _as_dict(one: Audited, also_covered: bool = True) -> dict[str, Any]:
    shown = [bug_as_dict(bug) for bug in one.bugs if also_covered or not bug.covered]
    counted = one.figures.as_dict()
    upstream = coverage.counts(one.version)
    return {**vars(one), "headline": headline(one), "bugs": shown, "figures": counted, "upstream": upstream}


def fails(bug: Bug, fail_on: str) -> bool:
    """True if a bug ends the command with status 1."""
    if fail_on == "uncovered":
        return not bug.covered and (bug.cover != "opt-in" or bug.selected)
    return fail_on == "any" or (fail_on == "opt-in" and not bug.covered)


def audit_installed(selection: toggle.Selection) -> list[Audited]:
    """Audit the Lightnings of this environment, by their code."""
    audited = []
    is_on = bool(selection.spec and selection.names) and autostart.is_enabled()
    for one in find_installed():
        found = Audited(one.distribution, one.version, notes=[one.note] if one.note else [], has_patches=is_on)
        found.known = releases.is_known(one.distribution, one.version)
        found.bugs, found.excluded = bugs.bugs_of_installed(one, selection)
        if found.excluded:
            found.notes.append(f"not there with the packages of this environment: {', '.join(found.excluded)}")
        audited.append(found)
    return audited


def audit_requirements(specs: list[str], selection: toggle.Selection) -> list[Audited]:
    """Audit releases by their number.

    Args:
        specs: requirements.
        selection: of patches.

    Raises:
        UsageError: a spec is not a requirement of Lightning.
    """
    return _audit_all(_requirements_of(specs), selection, Gaps())


def _requirements_of(specs: list[str]) -> list[_Requirement]:
    """The requirements of the command line."""
    found = []
    for spec in specs:
        requirement = _requirements.parse(spec) or _requirements.parse(_requirements.conda_spec(spec))
        if requirement is None:
            missing = f"There is no file {spec!r}, and it" if _is_bare(spec) else repr(spec)
            raise UsageError(f"{missing} is not a requirement such as lightning==2.2.5.")
        if _requirements.canonical(requirement) not in _requirements.NAMES:
            raise UsageError(_not_lightning(spec))
        if not _requirements.applies(requirement):
            raise UsageError(f"{spec!r} asks for nothing here: its marker is that of another Python or system.")
        found.append(_Requirement(_collect.Found(requirement)))
    return found


def _requirements_in(path: str, context: str, gaps: Gaps) -> list[_Requirement]:
    """The requirements of a file."""
    collected = _collect.read(path, context)
    gaps.skipped += _few(collected.skipped)
    has_patches = collected.has_patches
    if collected.found and not has_patches:
        directory = _projects.checkout_of(path) or os.path.dirname(path) or "."
        has_patches = _directories.imports_patches(_directories.look_through(directory, _directories.SCRIPTS_DEPTH))
    return [_Requirement(one, collected, has_patches) for one in collected.found]


def _audit_all(requirements: list[_Requirement], selection: toggle.Selection, gaps: Gaps) -> list[Audited]:
    """Audit requirements, equal ones of one place once."""
    audited: dict[tuple[Any, ...], Audited] = {}
    for requirement in requirements:
        one = _audit(requirement, selection)
        key = (one.file, one.line, one.requirement, one.version)
        if len(audited) < MAX_AUDITED or key in audited:
            audited.setdefault(key, one)
        else:
            gaps.skipped.append(f"more than {MAX_AUDITED} requirements of Lightning: the others were not looked at")
            break
    locked = {one.found.file for one in requirements if one.found.is_locked}
    named = {one.distribution for one in audited.values()}
    for one in audited.values():
        if (
            one.known
            and one.distribution == "lightning"
            and "pytorch-lightning" not in named
            and one.file not in locked
        ):
            one.notes.append(
                "installing lightning also installs pytorch-lightning, in its newest release unless something pins it"
            )
    return list(audited.values())


def _not_lightning(spec: str) -> str:
    if re.fullmatch(r"\d+(?:\.\w+)+", spec):
        return f"{spec!r} names no package: lightning=={spec}?"
    name = re.split(r"[^\w.-]", spec)[0]
    close = difflib.get_close_matches(name.lower(), _requirements.NAMES, n=1)
    missing = f"there is no file {spec!r}, and it" if _is_bare(spec) else repr(spec)
    if close and not re.search(r"\.[a-z]\w*$", spec):
        return f"{missing} is not a requirement of Lightning. Did you mean {spec.replace(name, close[0], 1)}?"
    return f"{missing} is not a requirement of {', '.join(_requirements.NAMES)}."


def _is_bare(spec: str) -> bool:
    """True if the argument may have been meant as a file name."""
    return re.fullmatch(r"[\w. -]+", spec) is not None


def _audit(asked: _Requirement, selection: toggle.Selection) -> Audited:
    found, pins = asked.found, asked.collected.pins
    requirement = found.requirement
    distribution = _requirements.canonical(requirement)
    text = _output.shown(requirement.name if requirement.url else str(requirement))
    release = _resolve.resolve(requirement, pins, found.group)
    version = _output.shown(release.version) if release.version else None
    one = Audited(distribution, version, text, found.file, found.line, known=release.known)
    one.has_patches = asked.has_patches
    one.notes += [release.note] if release.note else []
    one.notes += _few(asked.collected.unclear)
    if release.version is not None and release.known:
        bounds = releases.bounds(distribution, release.version)
        for bug in bugs.bugs_of(distribution, release.version, selection):
            if pins.exclude(bug.record.only_with, found.group, bounds):
                one.excluded.append(bug.record.name)
            else:
                one.bugs.append(bug)
        if one.excluded:
            one.notes.append(f"not there with the packages that are asked for besides: {', '.join(one.excluded)}")
        if "+patches." in release.version:
            carried = wheel.carried_by(release.version)
            which = "which patches the wheel carries is seen in an environment that has it: run `audit` there"
            one.notes.append(which if carried is None else f"the wheel carries {len(carried)} patches in its code")
    return one


def _few(texts: list[str], most: int = 3) -> list[str]:
    """The first of some remarks, and how many more there are."""
    some = list(dict.fromkeys(texts))
    return some if len(some) <= most else [*some[:most], f"there are {len(some) - most} more of these"]


def _write(audited: list[Audited], setting: _toggle.Toggle, args: argparse.Namespace, gaps: Gaps) -> None:
    if not audited:
        text = "There is no Lightning here: nothing to audit."
        if gaps.trouble or gaps.unclear:
            text = "Some files do not tell whether they ask for Lightning, and the others ask for none."
        elif gaps.skipped:
            text = "The files that were read ask for no Lightning, and not all were read."
        _output.write(text)
        _output.write("Do: give the file that asks for it, or a release: `lightning-patches audit lightning==2.2.5`.")
        return
    alike: dict[tuple[str, ...], list[Audited]] = {}
    for one in audited:
        alike.setdefault((headline(one), one.do), []).append(one)
    for number, (one, *others) in enumerate(alike.values()):
        if number:
            _output.write()
        _output.write(_output.paragraph(headline(one)))
        _output.write(_output.paragraph(f"Do: {one.do}"))
        if len(audited) > 1 and one.file:
            places = "; ".join(f"{each.file}, line {each.line}" for each in (one, *others))
            _output.write(_output.paragraph(f"in: {places}"))
        for note in dict.fromkeys(note for each in (one, *others) for note in each.notes):
            _output.write(_output.paragraph(f"note: {note}."))
        if _is_beside(one, audited) and not args.all:
            pinned = f"{one.distribution}=={one.version}"
            _output.write(
                _output.paragraph(f"Scripts that import pytorch_lightning: `lightning-patches audit {pinned}`.")
            )
            continue
        shown = [bug for bug in one.bugs if args.all or not bug.covered]
        if shown:
            _output.write()
            _output.write_table(
                ("BUG", "GROUP", "COVERED", "FIXED IN", "HARM"),
                [_row(bug) for bug in shown],
                [_STYLES[bug.fixed] for bug in shown],
                width=_output.MAX_TEXT_WIDTH,
            )
        for bug in one.bugs:
            if isinstance(bug.record, Unpatched):
                _output.write()
                _output.write(_output.paragraph(f"{bug.record.name}: no patch, {bug.reason}. {bug.record.advice}."))
            elif bug.refused:
                _output.write()
                _output.write(_output.paragraph(f"{bug.record.name}: the patch is not applied here: {bug.reason}."))
        if one.known and (args.fixes or not _is_compromised(one)):
            _write_upstream_fixes(one.version, args.fixes)
    if all(_is_compromised(one) or not one.bugs for one in audited):
        return
    _output.write()
    when = (
        "is not set: the default set counts as applied"
        if setting.value is None
        else f"is {_output.cut(setting.value)!r}"
    )
    hidden = "" if args.all else " `--all` lists what the patches mend, too."
    _output.write(_output.paragraph(f"{toggle.VARIABLE} {when}. `lightning-patches show BUG` tells more.{hidden}"))


def _is_beside(one: Audited, audited: list[Audited]) -> bool:
    """True for the pytorch-lightning that `pip install lightning` installs beside lightning. Few scripts import it."""
    installed = [each.distribution for each in audited if each.requirement is None]
    return one.requirement is None and one.distribution == "pytorch-lightning" and "lightning" in installed


def advice(one: Audited) -> str:
    """Advice in one or two sentences."""
    if _is_compromised(one):
        return f"{ADVICE}."
    if one.version is None:
        return f"pin a release, or install it and run `lightning-patches audit` there. {_KNOWN}"
    if not one.known and not one.bugs:
        return f"look at the number, or take a release that is known here. {_KNOWN}"
    steps: list[str] = []
    unpatched = [bug.record for bug in one.bugs if isinstance(bug.record, Unpatched)]
    if unpatched:
        steps += _without_patch(one.distribution, unpatched)
    covered = sum(bug.covered for bug in one.counted)
    if covered and not one.has_patches:
        which = f"the other {covered}" if unpatched else f"{covered} of them"
        steps.append(f"add `import lightning_patches` above every import of Lightning, for {which}")
    left_out = sum(bug.left_out for bug in one.bugs)
    if left_out:
        steps.append(f"change {toggle.VARIABLE}, which leaves out {left_out} patches that are on by default")
    opt_in = f" {_OPT_IN}" if any(bug.cover == "opt-in" and not bug.refused for bug in one.bugs) else ""
    return f"{'; '.join(steps) or 'nothing'}.{opt_in}"


def _without_patch(distribution: str, records: Sequence[Unpatched]) -> Iterator[str]:
    """Advice for bugs that have no patch: their own advice, or the release to upgrade to."""
    for record in records:
        if record.do:
            yield f"{record.do[0].lower()}{record.do[1:]}, for {record.name}"
    others = [record for record in records if not record.do]
    if others:
        move_to = max((record.move_to for record in others), key=coverage.order)
        yield f"move to {distribution}=={move_to} or newer, for {', '.join(record.name for record in others)}"


_STYLES = {"yes": "green", "opt-in": "yellow", "no": "bold red"}
_WORDS = {"yes": "yes", "opt-in": "opt-in", "no": "NO"}
_OPT_IN = f"Opt-in patches only where their bug is yours: `{toggle.VARIABLE}=default,NAME`."
_KNOWN = "`lightning-patches audit lightning` tells of the newest one."


def _is_compromised(one: Audited) -> bool:
    return any(bug.record.name == "compromised-release" for bug in one.bugs)


def headline(one: Audited) -> str:
    """The result in one sentence."""
    what = f"{one.distribution} {one.version}" if one.version else str(one.requirement)
    if one.version is None:
        return f"{what}: which release that is cannot be told, and so nothing can be said about its bugs."
    if not one.known and not one.bugs:
        return f"{what} is not a release that is known here: nothing can be said about its bugs."
    if _is_compromised(one):
        return f"{what} is a compromised release: nothing in it is patched, and its other bugs are not counted."
    counted = one.counted
    counts = [
        (sum(bug.fixed == state for bug in counted), words)
        for state, words in (
            ("yes", f"{'' if one.has_patches else 'would be '}mended by the patches"),
            ("opt-in", "with an opt-in patch"),
            ("no", "not mended"),
        )
    ]
    total = f"{len(counted)} known bug{'s' if len(counted) != 1 else ''}"
    parts = [f"{count} {words}" for count, words in counts if count]
    more = len(one.bugs) - len(counted)
    rest = f" {more} more {'is' if more == 1 else 'are'} there with an older torch only." if more else ""
    if gate.is_unknown(one.version, ()):
        rest += " Of 1.x no more is known here than what keeps it from running on today's packages."
    return f"{what} has {total}" + (f": {', '.join(parts)}." if parts else ".") + rest


def _row(bug: Bug) -> tuple[str, str, str, str, str]:
    data = bug_as_dict(bug)
    return data["name"], data["group"], _WORDS[bug.fixed], records.fixed_in(bug.record), data["harm"]


_VERDICTS_IN_WORDS = {
    "patched": "have a patch here",
    "open": "could have one and do not yet",
    "not patchable": "cannot be patched in a running program",
    "nothing to patch": "need none",
    "left out": "left out on purpose",
}


def _write_upstream_fixes(version: Optional[str], listing: bool) -> None:
    """Print what upstream has fixed since a release in one sentence; with ``listing``, each fix that has no patch."""
    found = coverage.counts(version)
    if not any(found.values()):
        return
    parts = [f"{count} {_VERDICTS_IN_WORDS[verdict]}" for verdict, count in found.items() if count]
    hint = "" if listing else " `--fixes` lists those without a patch."
    _output.write()
    _output.write(
        _output.paragraph(
            f"Upstream has fixed {sum(found.values())} bugs of {version} since: {', '.join(parts)}.{hint}"
        )
    )
    if listing:
        rows = [
            (fix.release, f"#{fix.numbers[0]}", ": ".join(filter(None, (fix.verdict, fix.reason))), fix.bug)
            for fix in coverage.fixed_after(version or "")
            if fix.verdict != "patched"
        ]
        _output.write()
        _output.write_table(("FIXED IN", "UPSTREAM", "VERDICT", "BUG"), rows)
