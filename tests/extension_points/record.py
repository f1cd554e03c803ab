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

COUNTED = ("explained", "mended")
"""Verdicts of which the record tells how many there are, and one of them."""


@dataclass
class Alike:
    """Programs of one release that differ because of the same patches, for the same reasons.

    Args:
        finding: the first of them.
        kinds: how many programs of which kind.
    """

    finding: Finding
    kinds: dict[str, int] = field(default_factory=dict)


@dataclass
class Record:
    """What was tried.

    Args:
        circumstances: of the last campaign.
        same: for each release, how many programs of which kind did the same.
        alike: those that did not, and may.
        findings: the others.
    """

    circumstances: dict[str, Any] = field(default_factory=dict)
    same: dict[str, dict[str, int]] = field(default_factory=dict)
    alike: dict[tuple[Any, ...], Alike] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def begin(self, version: str, again: bool = False) -> set[str]:
        """What was known of the release makes way: all of it, or what nothing excused. Returns the names of that."""
        self.circumstances = {name: fact for name, fact in evidence.surroundings().items() if name != "device"}
        if not again:
            self.same[version] = {}
            self.alike = {key: alike for key, alike in self.alike.items() if alike.finding.version != version}
        out = [f for f in self.findings if f.version == version and (f.verdict == "finding" or not again)]
        self.findings = [finding for finding in self.findings if finding not in out]
        return {name_of(finding.spec) for finding in out}

    def take(self, finding: Finding) -> None:
        kinds = self.same[finding.version]
        if finding.verdict in COUNTED:
            kinds = self.alike.setdefault(_key(finding), Alike(finding)).kinds
        elif finding.verdict != "same":
            self.findings.append(finding)
            return
        kinds[finding.spec["kind"]] = kinds.get(finding.spec["kind"], 0) + 1

    def results(self) -> set[str]:
        """The patches that were seen to change what a program that ends well computes or writes."""
        findings = [*self.findings, *(alike.finding for alike in self.alike.values())]
        return {patch for finding in findings for patch in finding.results}

    def tally(self, version: str) -> Counter[str]:
        """How many programs of a release came to which verdict."""
        counts = Counter(finding.verdict for finding in self.findings if finding.version == version)
        counts["same"] = sum(self.same[version].values())
        for alike in self.alike.values():
            if alike.finding.version == version:
                counts[alike.finding.verdict] += sum(alike.kinds.values())
        return counts


def _key(finding: Finding) -> tuple[Any, ...]:
    return finding.version, finding.verdict, *map(tuple, (finding.patches, finding.because, finding.results))


def load() -> Record:
    if not DATA.exists():
        return Record()
    known = json.loads(DATA.read_text(encoding="utf-8"))
    record = Record(known["circumstances"], known["same"])
    for entry in known["differ"]:
        kinds = entry.pop("programs", None)
        finding = Finding(**entry)
        if kinds is None:
            record.findings.append(finding)
        else:
            record.alike[_key(finding)] = Alike(finding, kinds)
    return record


def write(known: Record) -> None:
    """A line for the programs that differ alike, with one of them; and for each that nothing excuses."""
    entries = [(finding, {}) for finding in known.findings]
    entries += [(alike.finding, {"programs": alike.kinds}) for alike in known.alike.values()]
    lines = sorted(
        json.dumps(
            {
                "version": finding.version,
                "verdict": finding.verdict,
                "patches": finding.patches,
                "because": finding.because,
                "results": finding.results,
                **counts,
                "spec": {key: value for key, value in finding.spec.items() if key != "but"},
            }
        )
        for finding, counts in entries
    )
    differ = ",\n".join(lines)
    head = json.dumps({"circumstances": known.circumstances, "same": known.same}, indent=1)[:-2]
    DATA.write_text(f'{head},\n "differ": [\n{differ}\n]}}\n', encoding="utf-8")


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
        counts = known.tally(version)
        cells = [sum(counts.values()), counts["same"], *(counts[verdict] for verdict in VERDICTS)]
        lines.append(f"| {version} | {' | '.join(map(str, cells))} |")
    lines += [
        "",
        "**Explained**: the first official release with the fix does the same, line by line, or",
        "the patch declares the effect, or reads a property that stock reads, another number of times. **Mended**: it",
        "dies of an error on stock, and no longer of that, nor of another unless the first was the patch's.",
        "**Unlike itself**: two runs of it on stock differ. A campaign that `--minutes` has ended has tried fewer.",
        "",
        "| patch | because | programs | for instance |",
        "| --- | --- | ---: | --- |",
    ]
    rows: dict[tuple[str, str], tuple[int, str]] = {}
    differ = [(finding, 1) for finding in known.findings if finding.verdict == "finding"]
    differ += [(alike.finding, sum(alike.kinds.values())) for alike in known.alike.values()]
    for finding, count in differ:
        for patch, why in zip(finding.patches, finding.because):
            there, name = rows.get((patch, why), (0, f"{finding.version} {name_of(finding.spec)}"))
            rows[patch, why] = there + count, name
    for (patch, why), (count, name) in sorted(rows.items()):
        lines.append(f"| {patch} | {why or '**nothing excuses it**'} | {count} | {name} |")
    lines += ["", "## Declared effects", "", "| patch | effect |", "| --- | --- |"]
    lines += [
        f"| {patch} | {effect.says} |" for patch, effect in declared() if effect.situations or not effect.programs
    ]
    return "\n".join(lines) + "\n"
