"""What the judge for extension points found: ``upstream/evidence/extension_points.json``, and a page of it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.equivalence import evidence
from tests.extension_points.judge import Finding, name_of
from tests.support.effects import declared

DATA = evidence.DIRECTORY / "extension_points.json"

VERDICTS = ("explained", "mended", "unlike itself", "finding")


@dataclass
class Record:
    """What was tried.

    Args:
        circumstances: of the last campaign.
        tried: for each release, how many programs of which kind did the same.
        findings: those that did not.
    """

    circumstances: dict[str, Any] = field(default_factory=dict)
    same: dict[str, dict[str, int]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def begin(self, version: str, again: bool = False) -> set[str]:
        """What was known of the release makes way: all of it, or what nothing excused. Returns the names of that."""
        self.circumstances = {name: fact for name, fact in evidence.surroundings().items() if name != "device"}
        if not again:
            self.same[version] = {}
        out = [f for f in self.findings if f.version == version and (f.verdict == "finding" or not again)]
        self.findings = [finding for finding in self.findings if finding not in out]
        return {name_of(finding.spec) for finding in out}

    def take(self, finding: Finding) -> None:
        if finding.verdict != "same":
            self.findings.append(finding)
            return
        kinds = self.same[finding.version]
        kinds[finding.spec["kind"]] = kinds.get(finding.spec["kind"], 0) + 1


def load() -> Record:
    if not DATA.exists():
        return Record()
    known = json.loads(DATA.read_text(encoding="utf-8"))
    findings = [
        Finding(
            version, entry["program"], entry["verdict"], entry["patches"], entry["because"], results=entry["results"]
        )
        for entry in known["findings"]
        for version in entry["releases"]
    ]
    return Record(known["circumstances"], known["same"], findings)


def write(known: Record) -> None:
    """One entry for each program and outcome, with the releases on which it came."""
    entries: dict[str, dict[str, Any]] = {}
    for finding in known.findings:
        entry = {
            "program": {key: value for key, value in finding.spec.items() if key != "but"},
            "verdict": finding.verdict,
            "patches": finding.patches,
            "because": finding.because,
            "results": finding.results,
        }
        there = entries.setdefault(json.dumps(entry, sort_keys=True), {**entry, "releases": []})
        there["releases"].append(finding.version)
    data = {"circumstances": known.circumstances, "same": known.same}
    lines = ",\n".join(json.dumps(entries[key]) for key in sorted(entries))
    head = json.dumps(data, indent=1)[:-2]
    DATA.write_text(f'{head},\n "findings": [\n{lines}\n]}}\n', encoding="utf-8")


def page(known: Record) -> str:
    facts = known.circumstances
    lines = [
        "# Extension points",
        "",
        "Made by `scripts/renew` of what `scripts/prove extension_points` saw. Programs that put something around what",
        "the default patches replace or call (`tests/extension_points`), on stock and with the patches: overridden",
        "methods, lent weights, wrapped functions, errors, repetitions. Compared are every call into the program's own",
        "code with its arguments, every change of a file, values, weights, warnings and how it ends.",
        "",
        f"torch {facts.get('torch')}, Python {facts.get('python')}, {facts.get('date')}.",
        "",
        "| release | programs | same | explained | mended | unlike itself | findings |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for version in sorted(known.same, key=lambda text: [int(part) for part in text.split(".")[:3]]):
        verdicts = Counter(finding.verdict for finding in known.findings if finding.version == version)
        same = sum(known.same[version].values())
        cells = [same + sum(verdicts.values()), same, *(verdicts[v] for v in VERDICTS)]
        lines.append(f"| {version} | {' | '.join(map(str, cells))} |")
    lines += [
        "",
        "**Explained**: the first official release with the fix does the same, line by line, or",
        "the patch declares the effect, or reads a property that stock reads, another number of times. **Mended**: it",
        "dies of an error on stock, and no longer of that, nor of another unless the first was the patch's.",
        "**Unlike itself**: two runs of it on stock differ.",
        "",
        "| patch | because | programs | for instance |",
        "| --- | --- | ---: | --- |",
    ]
    rows: dict[tuple[str, str], list[str]] = {}
    for finding in known.findings:
        for patch, why in zip(finding.patches, finding.because):
            rows.setdefault((patch, why or "**nothing excuses it**"), []).append(
                f"{finding.version} {name_of(finding.spec)}"
            )
    for (patch, why), names in sorted(rows.items()):
        lines.append(f"| {patch} | {why} | {len(names)} | {names[0]} |")
    lines += ["", "## Declared effects", "", "| patch | effect |", "| --- | --- |"]
    lines += [
        f"| {patch} | {effect.says} |" for patch, effect in declared() if effect.situations or not effect.programs
    ]
    return "\n".join(lines) + "\n"
