"""List the known bugs of the Lightning that is installed or required, and which of them the patches fix.

  lightning-patches audit                      the Lightnings of this environment, by their version and code
  lightning-patches audit lightning==2.2.5     a release, by its number; it need not be installed
  lightning-patches audit uv.lock              a file with requirements: requirements files of pip, pyproject.toml,
                                               uv.lock, poetry.lock, pdm.lock, pylock.toml, Pipfile, Pipfile.lock,
                                               environment.yml, conda-lock.yml, pixi.toml, pixi.lock, setup.py,
                                               setup.cfg, tox.ini, Dockerfiles, workflows of GitHub and other YAML
                                               files with commands, shell scripts, Makefiles, notebooks
  lightning-patches audit .                    all such files in a directory, whatever their names are

A setup.py is not run: its literal lists are read. If no file requires Lightning, audit names the other text files that
import or install it, and ends with status 3.

Nothing is imported. For a range of versions, audit assumes the release that an installer would choose: the newest known
release that the range and the other requirements of the file allow. For example, lightning>=2 with torch==1.13.1 is
2.2.5. If the other requirements allow several choices, the release is unknown. Then its bugs are not listed, and the
exit status is 3. Bugs that can't occur with the required versions of torch, Python or another package are not counted.
In a Dockerfile, COPY and ADD map files of the build context to the image.

Files outside of the project are not read. The project is the directory that you name. For a file, it is the checkout
(the nearest parent directory with .git), or the directory of the file if there is none. No message quotes a line of a
file, except for a requirement of Lightning. Hidden directories (except for .github), virtual environments,
node_modules, site-packages, __pycache__, build and dist are not searched. Links are followed if they stay in the
project. All other files that were not read are listed, and the exit status is 3.

With --json, one object (later versions may add keys):
  schema     1
  toggle     {value (null: not set), selected: [patch names]}
  audited    [{requirement (null: installed), file, line, distribution, version (null: unknown), known (the
              release is known here), headline, do (advice), has_patches (the project uses the patches),
              excluded: [bugs that can't occur with the other packages], notes: [text], bugs,
              figures: {known, default, opt_in, unmended},
              upstream: {patched, open, not patchable, nothing to patch, left out}}]
  unclear    [files that could not be parsed]
  skipped    [files that were not read, and why]
  ignore     [names of the bugs that cause status 1, for --ignore]
  fail_on    the option
  ok         the exit status is 0
A bug is {name, title, group, harm, affected, fixed_in (null: never), drop_at, move_to, cover, covered, mended, reason,
issues, pull_requests, advisories}. cover is "default" or "opt-in" (how the patch is enabled) or "none" (no patch);
mended (fixed) is "yes", "opt-in" (an opt-in patch that is not selected would fix it) or "no". covered is true if the
patch will be applied with the current LIGHTNING_PATCHES; otherwise, reason states why not. upstream counts the upstream
fixes since that release, by their verdict here.

For several releases, the text begins with a table of the counts; each bug is listed once, and --json lists them for
each release. --format github writes one annotation for each file, for a workflow of GitHub Actions. sarif writes a
document for code scanning; if a release is unknown, it has a notification and executionSuccessful is false. markdown
writes a table for a summary or a comment. All formats but JSON leave out the bugs that the patches fix, unless you add
--all.

exit status:
  0  no bug of the kinds in --fail-on
  1  at least one bug of these kinds
  2  the command line is wrong, or a file cannot be read or parsed
  3  a release is unknown, or a file was not read, and there is no reason for status 1 or 2
"""

from __future__ import annotations

import argparse
import os

from lightning_patches import patches as catalogue
from lightning_patches.cli import _output, _toggle
from lightning_patches.cli._exit_status import NOT_APPLIED, OK, UNKNOWN, USAGE, UsageError
from lightning_patches.cli.audit.audited import Audited, audit_installed, audit_project
from lightning_patches.cli.audit.collect import Gaps
from lightning_patches.cli.audit.formats import FORMATS
from lightning_patches.cli.audit.formats.report import Report
from lightning_patches.cli.audit.projects import read_command_line, read_directory
from lightning_patches.cli.audit.requirements import parse_requirement
from lightning_patches.known.bugs import Bug
from lightning_patches.known.unpatched import UNPATCHED
from lightning_patches.patch import GROUPS

HELP = "list the known bugs of this environment, or of a requirement such as lightning==2.2.5"

FAIL_ON = ("any", "opt-in", "uncovered", "never")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="*",
        metavar="WHAT",
        help="a requirement such as lightning==2.2.5, a file, or a directory (default: this environment)",
    )
    parser.add_argument(
        "--requirement", action="append", default=[], metavar="SPEC", help="the same as WHAT; may be repeated"
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
        help="the bugs that cause exit status 1: any; opt-in: bugs that are not fixed with the current "
        "LIGHTNING_PATCHES; uncovered: bugs that are not fixed and that have no opt-in patch (the default); never. The "
        "bugs of one kind of machine, such as a TPU, count only for any",
    )
    parser.add_argument("--ignore", action="append", default=[], metavar="BUG", help="accept this bug; may be repeated")
    parser.add_argument("--all", action="store_true", help="also list the bugs that the patches fix")
    parser.add_argument(
        "--context",
        default="",
        metavar="DIRECTORY",
        help="the build context of `docker build` (default: the directory of the Dockerfile)",
    )
    parser.add_argument("--fixes", action="store_true", help="also list later upstream fixes that have no patch")
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
    audited: list[Audited] = []
    gaps = Gaps()
    specs, paths = [*args.requirement], [*args.requirements_file]
    for what in args.what:
        (paths if _is_path(what) else specs).append(what)
    if specs or paths:
        directories = [path for path in paths if os.path.isdir(path)]
        files = [path for path in paths if path not in directories]
        projects = [*map(read_directory, directories), read_command_line(specs, files, args.context)]
        for project in projects:
            audited += audit_project(project, setting.selection)
            for gap in project.gaps:
                gaps.add(gap)
    else:
        audited = audit_installed(setting.selection)
    for one in audited:
        one.bugs = [b for b in one.bugs if b.record.name not in args.ignore and args.group in (None, b.record.group)]
        one.bugs.sort(key=lambda bug: (bug.covered, GROUPS.index(bug.record.group)))
    failing = dict.fromkeys(bug.record.name for one in audited for bug in one.bugs if fails(bug, args.fail_on))
    status = NOT_APPLIED if failing else _status_without_bugs(audited, gaps, args.fail_on)
    report = Report(audited, gaps, setting, [*failing], args.fail_on, status, args.all, args.fixes)
    FORMATS[args.format](report)
    return status


def _is_path(what: str) -> bool:
    return os.path.exists(what) or (os.sep in what and "://" not in what and parse_requirement(what) is None)


def _status_without_bugs(audited: list[Audited], gaps: Gaps, fail_on: str) -> int:
    if gaps.trouble:
        return USAGE
    return UNKNOWN if fail_on != "never" and (gaps.skipped or not all(one.known for one in audited)) else OK


def fails(bug: Bug, fail_on: str) -> bool:
    """True if a bug causes exit status 1."""
    if fail_on == "uncovered":
        return not (bug.covered or bug.machine) and (bug.cover != "opt-in" or bug.selected)
    return fail_on == "any" or (fail_on == "opt-in" and not (bug.covered or bug.machine))
