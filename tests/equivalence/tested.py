"""Which tests of ``tests/patches`` have passed, and with what: as long as that is the same they are skipped, but for a
sample, as the cells of the matrix are.

``scripts/test --record`` runs them all, and writes ``upstream/patch_tests.json``.
"""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from lightning_patches import patches as catalogue
from tests.equivalence import matrix, record
from tests.equivalence.content import content
from tests.support.arms import ROOT, SCENARIOS

RECORD = ROOT / "upstream" / "patch_tests.json"
RECORDING = "LIGHTNING_PATCHES_TEST_RECORD"
"""Variable with which every test is run, and those that pass are noted."""


def load() -> dict[str, dict[str, Any]]:
    """By test file, what it depended on and which of its tests passed; empty if the circumstances are others."""
    if not RECORD.exists():
        return {}
    known = json.loads(RECORD.read_text(encoding="utf-8"))
    facts = record.surroundings()
    if any(known["circumstances"].get(name) != facts[name] for name in record.SAME):
        return {}
    files: dict[str, dict[str, Any]] = known["files"]
    return files


def holds(node: str, known: dict[str, dict[str, Any]]) -> bool:
    """Whether a test has passed, and nothing that it depends on has changed since; ``node`` is pytest's id of it."""
    file, _, test = node.partition("::")
    return file in known and test in known[file]["passed"] and known[file]["subject"] == subject(ROOT / file)


def note(outcomes: dict[str, bool]) -> None:
    """Bring the record up to date with tests that were run: whether each has passed, by pytest's id of it."""
    files = {file: entry for file, entry in load().items() if (ROOT / file).exists()}
    for node, passed in outcomes.items():
        file, _, test = node.partition("::")
        now = subject(ROOT / file)
        if file not in files or files[file]["subject"] != now:
            files[file] = {"subject": now, "passed": []}
        names = {*files[file]["passed"], test} if passed else {*files[file]["passed"]} - {test}
        files[file]["passed"] = sorted(names)
    lines = ",\n".join(f"  {json.dumps(file)}: {json.dumps(files[file])}" for file in sorted(files))
    text = f'{{\n "circumstances": {json.dumps(record.surroundings())},\n "files": {{\n{lines}\n }}\n}}\n'
    RECORD.write_text(text, encoding="utf-8")


@cache
def subject(path: Path) -> str:
    """Of a test file: what it does, the scenarios and patches that it names, and what of the package it imports."""
    text = path.read_text(encoding="utf-8")
    words = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    named = {str(word).replace("-", "_") for word in words}
    patches = [p.name for p in catalogue.all_patches() if any(p.name in str(word) for word in words)]
    files = {path, *SCENARIOS.glob("_*.py"), *matrix.imported(path)}
    files |= {file for file in SCENARIOS.glob("*.py") if file.stem in named}
    if "simulated_cuda" in text:
        files |= matrix.simulated_cuda()
    parts = [part for patch in patches for part in matrix.code(patch)]
    for file in sorted(files):
        parts += [file.relative_to(ROOT).as_posix().encode(), content(file)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
