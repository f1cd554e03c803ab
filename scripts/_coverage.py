"""Check that every upstream fix has a verdict.

The verdicts are in the patches' records and in ``lightning_patches/known/coverage.txt``.
``upstream/changelog_fixes.txt`` has the numbers under "Fixed" in both changelogs, at every tag of 2.x and on master,
and those of other commits whose title names a fix.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

from lightning_patches import patches as catalogue
from lightning_patches.known import coverage, records
from lightning_patches.known.unpatched import UNPATCHED

NUMBERS = Path(__file__).resolve().parents[1] / "upstream" / "changelog_fixes.txt"
CHANGELOGS = ("src/lightning/pytorch/CHANGELOG.md", "src/lightning/fabric/CHANGELOG.md")
SOURCES = ("lightning/pytorch", "lightning/fabric", "pytorch_lightning", "lightning_fabric")
TITLE = re.compile(r"(?:.*\bfix|avoid|prevent|warn).*\(#(\d+)\)$", re.IGNORECASE)
OTHER_TITLES = re.compile(
    r"\b(typos?|docs?|docstring|ci|tests?|links?|mypy|pylint|typing|type ?hints?|lint|readme|grammar|examples?|spelling"
    r"|descriptions?|messages?|deprecat\w*|ruff|bump|\w*XLA\w*|TPU)\b",
    re.IGNORECASE,
)
"""Titles of fixes that concern no user's program, or a device that no test has."""


def changelog_fixes(repository: Path) -> str:
    """``upstream/changelog_fixes.txt``: a line for each release with the numbers under "Fixed"."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(repository), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    tags = [tag for tag in git("tag").split() if re.fullmatch(r"2\.\d+\.\d+(\.post\d+)?", tag)]
    found: dict[str, set[str]] = {}
    for reference in [*sorted(tags, key=coverage.order), "master"]:
        for path in CHANGELOGS:
            for release, number in _fixed(git("show", f"{reference}:{path}")):
                found.setdefault(release, set()).add(number)
    first = coverage.order("1.8.0")
    old = {number for release in found if coverage.order(release) <= first for number in found[release]}
    lines = [
        f"{release}: {' '.join(sorted(found[release] - old, key=int))}"
        for release in sorted(found, key=coverage.order)
        if coverage.order(release) > first and found[release] - old
    ]
    paths = [f"src/{source}/*.py" for source in SOURCES]
    titles = git("log", "--since=2022-11-01", "--format=%s", "master", "--", *paths).splitlines()
    fixes = [TITLE.match(title) for title in titles if not OTHER_TITLES.search(title)]
    named = {match[1] for match in fixes if match} - {number for numbers in found.values() for number in numbers}
    lines.append(f"no changelog: {' '.join(sorted(named, key=int))}")
    head = 'Numbers under "Fixed" in upstream\'s changelogs, at every tag of 2.x and on master. By scripts/renew.'
    return "\n".join([f"# {head}", f"# master: {git('rev-parse', 'master').strip()}", *lines, ""])


def _fixed(changelog: str) -> list[tuple[str, str]]:
    release, section, found = "", "", []
    for line in changelog.splitlines():
        heading = re.match(r"(##+)\s+\[?([^\]\s]+)", line)
        if heading and heading[1] == "##":
            release, section = heading[2].lower(), ""
        elif heading:
            section = heading[2].lower()
        elif section == "fixed":
            found += [(release, number) for number in re.findall(r"(?:/pull/|/issues/|#)(\d+)", line)]
    return found


def problems() -> list[str]:
    """Return the problems of the verdicts, one line each."""
    verdicts = {number: fix for fix in reversed(coverage.fixes()) for number in fix.numbers}
    written = [fix for fix in coverage.fixes() if not fix.patches]
    counts = Counter(number for fix in written for number in fix.numbers)
    wrong = [f"#{number} has more than one verdict in coverage.txt" for number, count in counts.items() if count > 1]
    for fix in written:
        for patch in catalogue.all_patches():
            # If a patch fixes only a part, the verdict on the rest names the patch.
            if {*fix.numbers} & {*patch.numbers} and not re.search(rf"\b{re.escape(patch.name)}\b", fix.reason):
                problem = f"#{fix.numbers[0]} is {fix.verdict!r} in coverage.txt, but {patch.name} fixes it"
                wrong.append(f"{problem}: remove the line, or name the patch and what it does not fix")
    lines = [line.partition(":") for line in NUMBERS.read_text("utf-8").splitlines() if not line.startswith("#")]
    wrong += [
        f"{release}: fix #{number} has no verdict in lightning_patches/known/coverage.txt"
        for release, _, numbers in lines
        for number in numbers.split()
        if int(number) not in verdicts
    ]
    wrong += [
        f"#{number} is not a pull request of {patch.name}"
        for patch in catalogue.all_patches()
        for number, _ in patch.upstream.others
        if number not in patch.upstream.pull_requests
    ]
    wrong += [
        f"#{number}, of the known bug {bug.name}, is not marked as not patchable"
        for bug in UNPATCHED
        for number in bug.upstream.pull_requests
        if number not in verdicts or verdicts[number].verdict != "not patchable"
    ]
    return wrong


def disagreements(readme: Path) -> list[str]:
    """Return the rows of the README's table that disagree with the record of the linked patch."""
    wrong = []
    row = re.compile(r"^\| \[.*\]\(lightning_patches/patches/\w+/(\w+)\.py\) \|.*\| ([^|]+) \| \[(\d+)\]\(\S+\) \|$")
    for found in filter(None, map(row.match, readme.read_text("utf-8").splitlines())):
        module, releases, number = found.groups()
        (patch,) = catalogue.find(module.replace("_", "-"))
        if releases != records.affected(patch) or int(number) not in patch.numbers:
            meant = f"{records.affected(patch)} (numbers {', '.join(map(str, patch.numbers))})"
            wrong.append(f"{readme.name} says {releases} ({number}) for {patch.name}; the record says {meant}")
    return wrong
