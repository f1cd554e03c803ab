"""Check that every upstream fix has a verdict, and generate ``upstream/COVERAGE.md``.

The verdicts are in the patches' records and in ``lightning_patches/known/coverage.txt``.
``upstream/changelog_fixes.txt`` has the numbers under "Fixed" in both changelogs, at every tag of 2.x and on master.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

from lightning_patches import patches as catalogue
from lightning_patches.known import coverage, records
from lightning_patches.known.frequent import frequent
from lightning_patches.known.unpatched import UNPATCHED

NUMBERS = Path(__file__).resolve().parents[1] / "upstream" / "changelog_fixes.txt"
BY_HAND = {
    "`cloud_io._load`, `pl_load`, `torch.load`": "trusted-checkpoint-load",
    "`SLURMEnvironment.detect`": "slurm-only-below-srun",
    "`SLURMEnvironment._validate_srun_used`, `_validate_srun_variables`": "slurm-only-below-srun",
    "`SLURMEnvironment.resolve_root_node_address`": "slurm-master-addr",
    "`_check_cuda_matmul_precision`": "tf32-advice",
    "`_is_ampere_or_later`": "tf32-advice",
    "the epoch loop, for no validation on resume": "validation-on-resume",
    "`restore`, for no optimizer state": "fit-on-weights-alone",
    "the names in a state dict, for `_orig_mod.`": "compiled-names",
    "`from lightning.pytorch.loggers import NeptuneLogger`": "neptune-logger-name",
    "`LightningModule.log`, for torch.compile": "compiled-log",
    "the logger connector, for metrics without the progress bar": "progress-bar-without-wait",
    "`_atomic_save`": "checkpoint-written-once",
    "the epoch loop, for validation on the last batch": "validation-after-short-epoch",
    "`MPSAccelerator.is_available`": "mps-in-a-python-for-intel",
    "`_extract_batch_size`": "batch-size-of-a-log",
    "the epoch loop, for validation by optimizer steps": "validation-by-optimizer-steps",
    "`LightningModule.log`, for a dict of metrics": "log-of-a-dict",
    "the check of `gradient_clip_val` in manual optimization": "clipping-in-manual-optimization",
}
"""Parts of Lightning 2.x that public code replaces, and the patch or feature that makes the replacement unnecessary."""
CHANGELOGS = ("src/lightning/pytorch/CHANGELOG.md", "src/lightning/fabric/CHANGELOG.md")


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
    for line in NUMBERS.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            release, _, numbers = line.partition(":")
            missing = [number for number in numbers.split() if int(number) not in verdicts]
            wrong += [f"{release}: fix #{n} has no verdict in lightning_patches/known/coverage.txt" for n in missing]
    for patch in catalogue.all_patches():
        for number, _ in patch.upstream.others:
            if number not in patch.upstream.pull_requests:
                wrong.append(f"#{number} is not a pull request of {patch.name}")
    for bug in UNPATCHED:
        for number in bug.upstream.pull_requests:
            if number not in verdicts or verdicts[number].verdict != "not patchable":
                wrong.append(f"#{number}, of the known bug {bug.name}, is not marked as not patchable")
    return wrong


def disagreements(readme: Path) -> list[str]:
    """Return the rows of the README's table that disagree with the record of the linked patch."""
    wrong = []
    row = re.compile(r"^\| \[.*\]\(upstream/patches/\w+\.md#([\w-]+)\) \|.*\| ([^|]+) \| \[(\d+)\]\(\S+\) \|$")
    for found in filter(None, map(row.match, readme.read_text("utf-8").splitlines())):
        name, releases, number = found.groups()
        (patch,) = catalogue.find(name)
        if releases != records.affected(patch) or int(number) not in patch.numbers:
            meant = f"{records.affected(patch)} (numbers {', '.join(map(str, patch.numbers))})"
            wrong.append(f"{readme.name} says {releases} ({number}) for {name}; the record says {meant}")
    return wrong


def page() -> str:
    """``upstream/COVERAGE.md``."""
    summaries = {patch.name: patch.impact.summary for patch in catalogue.all_patches()}
    counts = Counter(fix.verdict for fix in coverage.fixes())
    lines = [
        "# Coverage of upstream fixes since 1.8.0",
        "",
        f"Our verdicts on {len(coverage.fixes())} fixes that Lightning has released since 1.8.0, or merged for the next"
        ' release: those under "Fixed" in its two changelogs, and others from the changelogs and the history. The'
        " column `release` has the first release with the fix. `scripts/renew` generates this page from the patch"
        " records and `lightning_patches/known/coverage.txt`.",
        "",
        "| verdict | fixes | |",
        "| --- | ---: | --- |",
        f"| patched | {counts['patched']} | a patch fixes the bug |",
        f"| open | {counts['open']} | a patch is possible, but not written yet |",
        f"| not patchable | {counts['not patchable']} | cannot be patched at run time, or no test can show the bug |",
        f"| nothing to patch | {counts['nothing to patch']} | a patch would not help any current program |",
        f"| left out | {counts['left out']} | a patch is possible, but we decided against it |",
        "",
        "| release | PR or issue | bug | verdict |",
        "| --- | --- | --- | --- |",
    ]
    for fix in coverage.fixes():
        numbers = ", ".join(f"[#{n}]({records.UPSTREAM}/issues/{n})" for n in fix.numbers)
        bug = fix.bug or summaries.get(fix.patches[0], "")
        names = ", ".join(f"`{name}`" for name in fix.patches)
        verdict = f"{fix.verdict}: {names or fix.reason}" if names or fix.reason else fix.verdict
        lines.append(f"| {fix.release} | {numbers} | {bug} | {verdict} |")
    return "\n".join([*lines, "", *by_hand(), ""])


def by_hand() -> list[str]:
    """Return the section about parts of Lightning that programs replace, with alternatives."""
    patches = {patch.name: patch for patch in catalogue.all_patches()}
    others = {other.name: other for other in frequent()}
    fixed = sum(name in patches for name in BY_HAND.values())
    lines = [
        "## Code that programs replace in Lightning",
        "",
        f"Public programs replace these {len(BY_HAND)} parts of Lightning to work around a bug. {fixed} of the bugs"
        " have a patch. For the others, the table and `diagnose` name a feature to use instead.",
        "",
        "| replaced code | patch |",
        "| --- | --- |",
    ]
    for replaced, name in BY_HAND.items():
        patch = patches.get(name)
        if patch is None:
            lines.append(f"| {replaced} | no patch: {others[name].do} |")
        else:
            lines.append(f"| {replaced} | `{name}`{'' if patch.default else ' (opt-in)'}: {patch.title} |")
    return lines
