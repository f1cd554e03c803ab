"""The differential trial on paper: ``upstream/evidence/healthy.json``, and ``HEALTHY.md`` made from it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from packaging.version import Version

from tests.equivalence import evidence
from tests.healthy.trial import Finding
from tests.support.effects import declared

DATA = evidence.DIRECTORY / "healthy.json"
VERDICTS = ("same", "explained", "mended", "discarded", "defect")


@dataclass
class Record:
    """What came of the programs that were tried.

    Args:
        circumstances: of the last campaign.
        counts: for each release, how many programs had which verdict, and how many failed on stock too.
        commits: on which commits, and with which state of the package: ``"6493e7453e 0a1b2c3d4e5f"``.
        findings: all but those that did the same.
    """

    circumstances: dict[str, Any] = field(default_factory=dict)
    tried: dict[str, list[int]] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def take(self, found: list[Finding], commit: str) -> None:
        """Add the findings of a campaign; what was known of the same programs makes way."""
        self.circumstances = {name: fact for name, fact in evidence.surroundings().items() if name != "device"}
        renewed = {finding.seed for finding in found}
        self.findings = [finding for finding in self.findings if finding.seed not in renewed]
        self.findings += [finding for finding in found if finding.verdict != "same"]
        self.findings.sort(key=lambda finding: finding.seed)
        for finding in found:
            seeds = self.tried.setdefault(finding.version, [])
            if finding.seed not in seeds:
                seeds.append(finding.seed)
                seeds.sort()
            self.commits[str(finding.seed)] = f"{commit} {evidence.package()}"


def load() -> Record:
    """The record; an empty one if there is none."""
    if not DATA.exists():
        return Record()
    known = json.loads(DATA.read_text(encoding="utf-8"))
    return Record(
        known["circumstances"],
        {version: expanded(text) for version, text in known["tried"].items()},
        {str(seed): commit for commit, text in known["commits"].items() for seed in expanded(text)},
        [Finding(**finding) for finding in known["findings"]],
    )


def write(known: Record) -> None:
    """Write both files."""
    by_commit: dict[str, list[int]] = {}
    for seed, commit in known.commits.items():
        by_commit.setdefault(commit, []).append(int(seed))
    data = {
        "circumstances": known.circumstances,
        "tried": {v: contracted(known.tried[v]) for v in sorted(known.tried, key=Version)},
        "commits": {commit: contracted(sorted(seeds)) for commit, seeds in by_commit.items()},
    }
    head = json.dumps(data, indent=1)[:-2]
    lines = ",\n".join("  " + json.dumps(_short(finding)) for finding in known.findings)
    evidence.replace_file(DATA, f'{head},\n "findings": [\n{lines}\n ]\n}}\n')


def _short(finding: Finding) -> dict[str, Any]:
    """Of what a patch may change, a few lines are enough."""
    data = asdict(finding)
    if finding.verdict != "defect":
        data.update(gone=[line[:200] for line in finding.gone[:3]], come=[line[:200] for line in finding.come[:3]])
    else:
        data.update(gone=[line[:400] for line in finding.gone[:20]], come=[line[:400] for line in finding.come[:20]])
    return data


def contracted(seeds: list[int]) -> str:
    """``[0, 9, 18, 20]`` is ``"0:19:9 20"``: stretches of the same step, as ``range`` takes them."""
    text, rest = [], list(seeds)
    while rest:
        step = rest[1] - rest[0] if len(rest) > 1 else 1
        length = 1
        while length < len(rest) and rest[length] - rest[length - 1] == step:
            length += 1
        text.append(str(rest[0]) if length == 1 else f"{rest[0]}:{rest[length - 1] + 1}:{step}")
        rest = rest[length:]
    return " ".join(text)


def expanded(text: str) -> list[int]:
    """The seeds that ``contracted`` wrote."""
    found: list[int] = []
    for part in text.split():
        found += range(*map(int, part.split(":"))) if ":" in part else [int(part)]
    return found


def markdown(known: Record) -> str:
    """The record, for people."""
    of_release: dict[str, Counter[str]] = {}
    for version in sorted(known.tried, key=Version):
        counts = Counter(f.verdict for f in known.findings if f.version == version)
        counts["same"] = len(known.tried[version]) - sum(counts.values())
        of_release[version] = counts
    total = sum(of_release.values(), Counter())
    facts, commits = known.circumstances, sorted({commit.split(" ")[0] for commit in known.commits.values()})
    holding = sum(commit.endswith(f" {evidence.package()}") for commit in known.commits.values())
    lines = [
        "# Healthy programs",
        "",
        f"**{sum(total.values())} programs: {holding} were tried with this state of the package, "
        f"{sum(total.values()) - holding} are stale; {total['defect']} defects.**",
        "",
        "Made of `evidence/healthy.json`, which `scripts/prove healthy` writes. Random programs for Trainer and",
        "Fabric (`tests/healthy`), each run on a stock release and with the default set of patches on it. Compared, to",
        "the last bit: every hook with its step, every logged value, gradients and weights, learning rates, the files",
        "left behind and their contents, warnings and messages, exceptions, exit status, and whether it ends at all.",
        "",
        f"Torch {facts.get('torch')}, Python {facts.get('python')}, last on {facts.get('date')}; on the commits "
        f"{', '.join(commits).replace('-', 'that are no longer in the history')}.",
        "",
        "| release | programs | same | explained | mended | defects | discarded |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for version, counts in [*of_release.items(), ("all", total)]:
        cells = [sum(counts.values()), *(counts[v] for v in ("same", "explained", "mended", "defect", "discarded"))]
        lines.append(f"| {version} | {' | '.join(map(str, cells))} |")
    lines += [
        "",
        "**Explained**: the first official release with the fix does the same as the patch, line by line where the two",
        "differ, or the patch declares the effect. **Mended**: the program dies of an error on stock, and no",
        "longer with the patch. **Discarded**: it hangs on stock, or does not do the same twice.",
        "",
        "## What the patches changed",
        "",
        "| patch | programs | releases | because |",
        "| --- | ---: | --- | --- |",
    ]
    rows: dict[tuple[str, str], list[Finding]] = {}
    for finding in known.findings:
        for patch, why in zip(finding.patches, finding.because):
            if finding.verdict != "discarded":
                rows.setdefault((patch, why or "**nothing excuses it**"), []).append(finding)
    for (patch, why), findings in sorted(rows.items()):
        versions = ", ".join(sorted({f.version for f in findings}, key=Version))
        lines.append(f"| {patch} | {len(findings)} | {versions} | {why} |")
    lines += ["", "## Defects", ""]
    defects = [finding for finding in known.findings if finding.verdict == "defect"]
    for finding in defects:
        lines += [
            f"- `scripts/prove healthy --show {finding.seed}`, {finding.version}: "
            f"{', '.join(finding.patches) or 'unknown'}: `{finding.spec}`"
        ]
    if not defects:
        lines.append("None.")
    lines += ["", "## Declared effects", "", "| patch | effect |", "| --- | --- |"]
    lines += [f"| {patch} | {effect.says} |" for patch, effect in declared() if not effect.situations]
    return "\n".join(lines) + "\n"


def defects() -> int:
    """1 if there is a defect."""
    found = [str(finding.seed) for finding in load().findings if finding.verdict == "defect"]
    if found:
        print(f"{len(found)} defects: {' '.join(found)}", file=sys.stderr)
    return 1 if found else 0
