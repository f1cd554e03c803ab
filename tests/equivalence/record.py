"""The matrix on paper: ``upstream/evidence/equivalence.txt``, and ``EQUIVALENCE.md`` made from it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Iterable

from packaging.version import Version

from tests.equivalence import evidence, matrix
from tests.equivalence.evidence import Seen

Outcomes = list[dict[str, Any]]
ARMS = ("stock", "shim", "fork", "official")
SIGNS = {"bug": "✗", "right": "✓", "as stock": "=", "no bug": "?", "differs": "≠", "fails": "!"}
FILES = ("equivalence.txt", "equivalence.cuda.txt")
"""The record of the CPU, and that of a GPU, which is empty until there is one."""
SAME = ("torch", "python", "device")
"""What must not have changed for a cell to be taken over from an earlier run."""


def key(outcome: dict[str, Any]) -> str:
    return " ".join(str(outcome[name]) for name in ("patch", "case", "distribution", "version", "role"))


def read(path: Path) -> tuple[dict[str, Any], Outcomes]:
    """The circumstances and the cells of a record, stale or not."""
    cells = {matrix.key(cell): cell for cell in matrix.every_cell()}

    def now(one: Seen) -> str:
        cell = cells.get(key(_outcome(one)))
        return matrix.subject(cell) if cell is not None else ""

    facts, seen = evidence.read(path, now)
    return facts, [_outcome(one) for one in seen]


def load(path: Path, facts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Cells of an earlier run that hold under the present circumstances; empty if there are none."""
    earlier, outcomes = read(path)
    if any(earlier.get(name) != facts[name] for name in SAME):
        return {}
    return {key(outcome): outcome for outcome in outcomes}


def write(path: Path, facts: dict[str, Any], outcomes: Outcomes) -> None:
    evidence.write(path, facts, map(_seen, outcomes))


def _seen(outcome: dict[str, Any]) -> Seen:
    arms = ", ".join(f"{arm} {outcome['arms'][arm]}" for arm in ARMS if arm in outcome["arms"])
    reference = outcome["reference"].split(" ")
    against = f" ({'recommended' if reference[0] == 'recommended' else reference[-1]})" if outcome["reference"] else ""
    torch = f", torch {outcome['torch']}" if outcome["torch"] else ""
    return Seen(
        case=f"{outcome['patch']}:{outcome['case']}" if outcome["case"] else outcome["patch"],
        saw=f"{outcome['role']}: {arms or 'not run'}{against}{torch}",
        place=(outcome["distribution"], outcome["version"]),
        by=tuple(outcome["by"].split(" ")) if outcome["by"] else None,
        commit=outcome["commit"],
        note=outcome["details"],
        subject=outcome["subject"],
        stale=outcome["stale"],
        line=outcome.get("line", ("", 0)),
        more={name: outcome[name] for name in ("expected", "premise")},
    )


def _outcome(one: Seen) -> dict[str, Any]:
    role, arms, against, torch = re.fullmatch(r"(\w+): (.*?)(?: \((\S+)\))?(?:, torch (\S+))?", one.saw).groups()  # type: ignore[union-attr]
    distribution, version = one.place
    reference = f"recommended usage on {distribution} {version}" if against else ""
    if against and against != "recommended":
        reference = f"{distribution} {against}"
    patch, _, case = one.case.partition(":")
    words = (arm.split(" ", 1) for arm in arms.split(", ")) if arms != "not run" else ()
    return {
        "patch": patch,
        "case": case,
        "distribution": distribution,
        "version": version,
        "role": role,
        "arms": dict(words),
        "reference": reference,
        "agrees": not one.note,
        "torch": torch or "",
        "subject": one.subject,
        "premise": "",
        "expected": "",
        **one.more,
        "by": " ".join(one.by or ()),
        "commit": one.commit,
        "stale": one.stale,
        "details": one.note,
        "line": one.line,
    }


def markdown(facts: dict[str, Any], outcomes: Outcomes) -> str:
    """The table: releases down, patches across, each cell with its four arms."""
    parts = [_heading(facts, outcomes), _legend(), _table(outcomes), _disagreements(outcomes), _cases(outcomes)]
    if facts.get("left_out"):
        parts.append(["## Left out", "", *(f"- {what}" for what in facts["left_out"])])
    return "\n\n".join("\n".join(part) for part in parts if part).rstrip() + "\n"


def _heading(facts: dict[str, Any], outcomes: Outcomes) -> list[str]:
    bad, stale = ([o for o in outcomes if not o["agrees"]], [o for o in outcomes if o["stale"]])
    scope = "every affected release" if facts["scope"] == "all" else "the boundaries of the affected ranges"
    run = f"{len(outcomes)} cells"
    if len(outcomes) < facts["planned"]:
        run = f"Not a whole run: {len(outcomes)} of {facts['planned']} cells"
    stood_for = sum(bool(outcome["by"]) for outcome in outcomes)
    commits = Counter(f"`{outcome['commit']}` {'(stale)' * outcome['stale']}".strip() for outcome in outcomes)
    lines = [
        "# Equivalence",
        "",
        f"**{run}: {len(outcomes) - len(stale)} hold on this code, {len(stale)} are stale; {len(bad)} disagree.** A "
        "cell is one case of one scenario on one release of one distribution. It is stale if something that it depends "
        f"on has changed since it was run. Scope: {scope}.",
        "",
        f"Last run on {facts['date']}, torch {facts['torch']}, Python {facts['python']}, {facts['device']}; "
        f"{facts['runs']} runs, {facts['seconds'] / 60:.0f} minutes. Made of `evidence/{FILES[0]}`, which "
        "`scripts/prove equivalence` writes. Cells by the commit that they were run on: "
        + ", ".join(f"{commit} {count}" for commit, count in commits.most_common())
        + ".",
    ]
    if stood_for:
        lines += [
            "",
            f"For {stood_for} cells another release stands that is the same source in every function that the arms "
            "executed; the record says which.",
        ]
    return lines


def _legend() -> list[str]:
    return [
        "A sign for each of stock, shim, fork, official, in this order:",
        "",
        "| sign | stock | shim, fork | official |",
        "| --- | --- | --- | --- |",
        "| ✗ | shows the reported bug | shows the bug | |",
        "| ✓ | has no bug | observed exactly what the official arm did | has no bug |",
        "| = | | applied nothing, observed what stock did | |",
        "| ≠ | | observed something else | |",
        "| ? ! | does not show the bug; fails otherwise | | fails |",
        "",
        "So an affected release reads ✗✓✓✓, any other ✓=. The official arm is the first fixed release or, where "
        "upstream never fixed the bug (*), or the fixed release cannot be imported with the torch that shows it, the "
        "usage that its maintainers recommend, on the same release. **Bold** "
        "disagrees. Both distributions and all cases are in a cell; where they differ, each is named.",
    ]


def _table(outcomes: Outcomes) -> list[str]:
    patches = list(dict.fromkeys(outcome["patch"] for outcome in outcomes))
    versions = sorted({outcome["version"] for outcome in outcomes}, key=Version, reverse=True)
    recommended = {o["patch"] for o in outcomes if o["reference"].startswith("recommended")}
    titles = [f"{patch}*" if patch in recommended else patch for patch in patches]
    places: defaultdict[tuple[str, str], Outcomes] = defaultdict(list)
    for outcome in outcomes:
        places[outcome["patch"], outcome["version"]].append(outcome)
    lines = ["| release | " + " | ".join(titles) + " |", "| --- |" + " --- |" * len(patches)]
    for version in versions:
        row = [_cell(places[patch, version]) for patch in patches]
        lines.append(f"| {version} | " + " | ".join(row) + " |")
    return lines


def _disagreements(outcomes: Outcomes) -> list[str]:
    lines = []
    for outcome in outcomes:
        if not outcome["agrees"]:
            case = f" ({outcome['case']})" if outcome["case"] else ""
            lines += ["", f"- {outcome['patch']}{case}, {outcome['distribution']} {outcome['version']}:", ""]
            lines += [f"      {line}" for line in outcome["details"].splitlines()]
    return ["## What disagrees", *lines] if lines else []


def _cases(outcomes: Outcomes) -> list[str]:
    lines = ["## Cases", "", "| patch | case | cells | official arm |", "| --- | --- | --- | --- |"]
    cases: defaultdict[tuple[str, str], Outcomes] = defaultdict(list)
    for outcome in outcomes:
        cases[outcome["patch"], outcome["case"]].append(outcome)
    for (patch, case), mine in cases.items():
        old = {f" (with torch {o['torch']})" for o in mine if o.get("torch")}
        references = {_reference(o["reference"]) for o in mine if o["reference"]}
        lines.append(f"| {patch} | {case} | {len(mine)} | {', '.join(sorted(references))}{''.join(sorted(old))} |")
    return lines


def _reference(text: str) -> str:
    return "recommended usage" if text.startswith("recommended") else text.split()[-1]


def _cell(outcomes: Outcomes) -> str:
    if not outcomes:
        return ""
    signs: dict[str, Outcomes] = {}
    for outcome in outcomes:
        signs.setdefault(_signs(outcome), []).append(outcome)
    if len(signs) == 1:
        return next(iter(signs))
    return "<br>".join(f"{sign} {_where(group)}" for sign, group in signs.items())


def _signs(outcome: dict[str, Any]) -> str:
    found = "".join(SIGNS[outcome["arms"][arm]] for arm in ARMS if arm in outcome["arms"]) or "!"
    return found if outcome["agrees"] else f"**{found}**"


def _where(group: Iterable[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(f"{o['distribution']} {o['case']}".strip() for o in group))
