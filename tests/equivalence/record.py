"""The matrix on paper: ``equivalence.json``, and ``EQUIVALENCE.md`` made from it."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Iterable

from packaging.version import Version

Outcomes = list[dict[str, Any]]
ARMS = ("stock", "shim", "fork", "official")
SIGNS = {"bug": "✗", "right": "✓", "as stock": "=", "no bug": "?", "differs": "≠", "fails": "!"}
FILES = (("equivalence.json", "EQUIVALENCE.md"), ("equivalence.cuda.json", "EQUIVALENCE.cuda.md"))
"""The record of the CPU and of a GPU."""
SAME = ("torch", "python", "device")
"""What must not have changed for a cell to be taken over from an earlier run."""


SIMULATED = "CPU; cases that need CUDA on the simulated device"


def surroundings(device: str = SIMULATED) -> dict[str, Any]:
    """When and with what the scenarios run."""
    import torch

    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": device,
    }


def key(outcome: dict[str, Any]) -> str:
    return " ".join(str(outcome[name]) for name in ("patch", "case", "distribution", "version", "role"))


def load(path: Path, facts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Cells of an earlier run that hold under the present circumstances; empty if there are none."""
    if not path.exists():
        return {}
    earlier = json.loads(path.read_text(encoding="utf-8"))
    if any(earlier["circumstances"].get(name) != facts[name] for name in SAME):
        return {}
    commit = earlier["circumstances"]["commit"]
    return {key(outcome): {"commit": commit, **outcome} for outcome in earlier["cells"]}


def spent(path: Path) -> tuple[int, int]:
    """Seconds and runs of the earlier run."""
    facts = json.loads(path.read_text(encoding="utf-8"))["circumstances"]
    return facts["seconds"], facts["runs"]


def write(directory: Path, facts: dict[str, Any], outcomes: Outcomes, cuda: bool = False) -> None:
    """Write both files."""
    lines = ",\n".join("  " + json.dumps(outcome, sort_keys=True) for outcome in outcomes)
    text = f'{{\n "circumstances": {json.dumps(facts)},\n "cells": [\n{lines}\n ]\n}}\n'
    data, table = FILES[cuda]
    _replace(directory / data, text)
    _replace(directory / table, markdown(facts, outcomes))


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def markdown(facts: dict[str, Any], outcomes: Outcomes) -> str:
    """The table: releases down, patches across, each cell with its four arms."""
    parts = [_heading(facts, outcomes), _legend(), _table(outcomes), _disagreements(outcomes), _cases(outcomes)]
    if facts.get("left_out"):
        parts.append(["## Left out", "", *(f"- {what}" for what in facts["left_out"])])
    return "\n\n".join("\n".join(part) for part in parts if part).rstrip() + "\n"


def _heading(facts: dict[str, Any], outcomes: Outcomes) -> list[str]:
    bad = [outcome for outcome in outcomes if not outcome["agrees"]]
    scope = "every affected release" if facts["scope"] == "all" else "the boundaries of the affected ranges"
    run = f"{len(outcomes)} cells"
    if len(outcomes) < facts["planned"]:
        run = f"Not a whole run: {len(outcomes)} of {facts['planned']} cells"
    stale = Counter(outcome["commit"] for outcome in outcomes if outcome.get("stale"))
    stood_for = sum(bool(outcome.get("by")) for outcome in outcomes)
    lines = [
        "# Equivalence",
        "",
        f"**{run}, {len(bad)} disagree.** A cell is one case of one scenario on one release of one "
        f"distribution. Scope: {scope}.",
        "",
        f"Run on {facts['date']} at commit {facts['commit']}, torch {facts['torch']}, Python {facts['python']}, "
        f"{facts['device']}; {facts['runs']} runs, {facts['seconds'] / 60:.0f} minutes. Written by "
        "`scripts/equivalence`. A cell that was run at an earlier commit is kept as long as nothing that it depends on "
        "has changed.",
    ]
    if stood_for:
        lines += [
            "",
            f"For {stood_for} cells another release stands that is the same source in every function that the arms "
            "executed; `by` in `equivalence.json` says which.",
        ]
    if stale:
        lines += ["", f"**{sum(stale.values())} cells are stale**: something that they depend on has changed since."]
        lines += [f"Last run at commit {commit}: {count}." for commit, count in stale.most_common()]
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
