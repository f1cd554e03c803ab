"""Which tests have passed, and with what: as long as that is the same they are skipped, but for a sample, as the cells
of the matrix are.

Each test of ``tests/patches`` depends on its patch, its scenario and what it imports. Of the other tests only those of
:data:`COSTLY` that take their time are left out; they depend on all code but other tests. ``scripts/test --record``
runs them all, and writes ``upstream/passed_tests.json``.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lightning_patches import patches as catalogue
from tests.equivalence import matrix, record
from tests.equivalence.content import content
from tests.support import pythons
from tests.support.arms import ROOT, SCENARIOS

RECORD = ROOT / "upstream" / "passed_tests.json"
COSTLY = (
    *("activation", "conformance/test_conformance.py", "distributed", "healthy", "pythons", "simulated_cuda"),
    *(f"equivalence/test_{name}.py" for name in ("calls", "classify_release", "diffs", "fork", "upstream_tests")),
)
"""Below ``tests``: folders and files of which most tests start processes."""
RUNS = {
    "equivalence": ("upstream/diffs/*"),
    "healthy": ("upstream/effects.json",),
    "pythons": ("tests/unit/test_*.py",),
    "simulated_cuda": ("upstream/diffs/*", "tests/gpu/test_*.py", "tests/patches/test_*.py"),
}
"""By folder, what its tests depend on besides the code that all share."""
SECONDS = 2.0
"""A test of these that takes less is always run."""
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


def may_be_skipped(path: Path) -> bool:
    """Whether a test file is one of those that are recorded."""
    name = path.relative_to(ROOT / "tests").as_posix() if ROOT / "tests" in path.parents else ""
    return path.parent == matrix.TESTS or any(name == costly or name.startswith(f"{costly}/") for costly in COSTLY)


class Run:
    """What a run of pytest sees of each test."""

    def __init__(self) -> None:
        self._passed: dict[str, bool] = {}
        self._seconds: dict[str, float] = {}

    def begin(self) -> None:
        """Look at what the tests depend on: what is recorded of a run is what was there when it began."""
        for path in (ROOT / "tests").rglob("test_*.py"):
            if may_be_skipped(path):
                subject(path)

    def take(self, node: str, passed: bool, seconds: float) -> None:
        """A report of a test's set-up, call or teardown. A test that was skipped has not passed."""
        node = re.sub(r"@[\w.-]+$", "", node)  # the group that xdist keeps on one worker
        self._passed[node] = self._passed.get(node, True) and passed
        self._seconds[node] = self._seconds.get(node, 0.0) + seconds

    def outcomes(self) -> dict[str, bool]:
        """Of the tests that are recorded: whether each has passed, but for those that would save no time."""
        files = {node: ROOT / node.partition("::")[0] for node in self._passed}
        return {
            node: passed
            for node, passed in self._passed.items()
            if may_be_skipped(files[node])
            and (not passed or files[node].parent == matrix.TESTS or self._seconds[node] >= SECONDS)
        }

    def end(self) -> None:
        """Write the record."""
        if self.outcomes():
            note(self.outcomes())


THIS_RUN = Run()


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


def subject(path: Path) -> str:
    """Digest of what the tests of a file depend on."""
    return of_patches(path) if path.parent == matrix.TESTS else of_code(path)


@cache
def of_code(path: Path) -> str:
    """Of a file of :data:`COSTLY`: the file, the package, the scripts, all that tests share, and the Pythons that are
    there; the diffs and other tests where it runs them."""
    folder = path.relative_to(ROOT / "tests").parts[0]
    files = {path, *(file for name in RUNS.get(folder, ()) for file in ROOT.glob(name))}
    found = of_shared_code().copy()
    for part in named_contents(sorted(files)):
        found.update(b"\0" + part)
    return found.hexdigest()[:16]


@cache
def of_shared_code() -> hashlib._Hash:
    """Of the Pythons and the files that each test depends on; to be copied, and added to."""
    minors = repr([minor for minor in pythons.MINORS if pythons.find(minor)]).encode()
    return hashlib.sha256(b"\0".join([minors, *named_contents(shared_code())]))


def named_contents(files: Iterable[Path]) -> Iterator[bytes]:
    """Of each file its name, and what of it takes part in a proof."""
    for file in files:
        yield file.relative_to(ROOT).as_posix().encode()
        yield content(file)


def shared_code() -> list[Path]:
    """The files that any test may depend on; none is of one test, or decides which are run."""
    files = {ROOT / "setup.cfg", ROOT / "pyproject.toml", *(ROOT / "upstream").glob("*.lock")}
    files |= {file for name in ("lightning_patches", "scripts", "tests") for file in (ROOT / name).rglob("*")}
    passed_over = {ROOT / "tests" / "conftest.py", Path(__file__)}
    return [
        file
        for file in sorted(files - passed_over)
        if file.is_file() and file.suffix != ".md"
        if not any(part == "__pycache__" or part.endswith(".egg-info") for part in file.parts)
        if not (file.name.startswith("test_") and ROOT / "tests" in file.parents)
    ]


@cache
def of_patches(path: Path) -> str:
    """Of a file of ``tests/patches``: what it does, the scenarios and patches that it names, and what of the package it
    imports."""
    text = path.read_text(encoding="utf-8")
    words = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    named = {str(word).replace("-", "_") for word in words}
    patches = [p.name for p in catalogue.all_patches() if any(p.name in str(word) for word in words)]
    files = {path, *SCENARIOS.glob("_*.py"), *matrix.imported(path)}
    files |= {file for file in SCENARIOS.glob("*.py") if file.stem in named}
    if "simulated_cuda" in text:
        files |= matrix.simulated_cuda()
    parts = [part for patch in patches for part in matrix.code(patch)]
    parts += named_contents(sorted(files))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
