"""Select the tests of ``scripts/test``, and the order of the rest: see ``tests/README.md``."""

from __future__ import annotations

import datetime
import re
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
PATCHES = ROOT / "lightning_patches" / "patches"
LAST_OF_1X = "1.9.5"
PART_OF_1X = 8
"""A run without arguments includes every eighth boundary on this release."""
SOON = (
    "unit/", "equivalence/test_boundaries.py", "equivalence/test_conformance.py", "equivalence/test_diffs.py",
    "equivalence/test_records.py", "equivalence/test_scripts.py", "differential/test_reads.py",
    "differential/test_resume.py",
)  # fmt: skip
"""Paths below ``tests`` that every run without arguments includes, except tests marked as slow and most boundaries."""


def soon(items: Sequence[Any]) -> list[bool]:
    """Return, for each collected test, True if a run without arguments includes it."""
    changed = changed_paths()
    patches, files = changed_patches(changed), set(changed)
    sampled = _sample(boundary for boundary in map(_boundary, items) if boundary is not None)
    seen: set[tuple[str, str]] = set()
    chosen = []
    for item in items:
        path = item.path.relative_to(ROOT).as_posix() if ROOT in item.path.parents else ""
        boundary = _boundary(item)
        if boundary is not None:
            patch = boundary.row.patch
            is_newest = _is_newest_affected(boundary) and ("newest", patch) not in seen
            if is_newest:
                seen.add(("newest", patch))
            chosen.append(is_newest or boundary in sampled or patch in patches)
        else:
            is_own = of_patch(path) in patches
            is_quick = path.startswith(tuple(f"tests/{name}" for name in SOON)) and not _is_slow(item)
            chosen.append(is_quick or is_own or path in files)
    return chosen


def _sample(boundaries: Iterable[Any]) -> set[Any]:
    """Sample boundaries on the last release of 1.x, others every day. All of them take a quarter of an hour."""
    last = sorted({boundary for boundary in boundaries if boundary.version == LAST_OF_1X}, key=str)
    day = datetime.datetime.now(datetime.timezone.utc).date().toordinal()
    return set(last[day % PART_OF_1X :: PART_OF_1X])


def of_patches(items: Sequence[Any], patches: Sequence[str]) -> list[bool]:
    """Return, for each test, True if it belongs to one of these patches, or is quick and has no parameters."""
    return [_patch_of(item) in patches or not (_patch_of(item) or _is_slow(item)) for item in items]


def _patch_of(item: Any) -> str:
    """Return the patch of a test; "" if it has no parameters, and "?" if they name no patch."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    path = item.path.relative_to(ROOT).as_posix() if ROOT in item.path.parents else ""
    of = [getattr(one, "name", "") for name, one in parameters.items() if name in ("patch", "diff")]
    boundary = _boundary(item)
    return boundary.row.patch if boundary is not None else of_patch(path) or "".join(of) or "?" * bool(parameters)


def rotated(items: Sequence[Any], number: int) -> list[Any]:
    """Rotate the tests: in seven turns, each seventh of them comes first."""
    first = len(items) * (number % 7) // 7
    return [*items[first:], *items[:first]]


def _boundary(item: Any) -> Any:
    return getattr(item, "boundary", None)


def _is_slow(item: Any) -> bool:
    return item.get_closest_marker("slow") is not None


def _is_newest_affected(boundary: Any) -> bool:
    from tests.equivalence import boundaries

    return bool(boundary == boundaries.newest_affected(boundary.row))


def changed_paths() -> list[str]:
    """What differs from the commit at which this branch left main; on main itself, from the commit before. Where there
    is neither, as in a shallow clone, nothing."""
    head = _git("rev-parse", "HEAD")
    for main in ("origin/main", "main"):
        base = _git("merge-base", "HEAD", main)
        if base:
            base = _git("rev-parse", "HEAD~1") if base == head else base
            break
    else:
        return []
    tracked = _git("diff", "--name-only", base) if base else ""
    return [*tracked.splitlines(), *_git("ls-files", "--others", "--exclude-standard").splitlines()]


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def changed_patches(paths: Iterable[str]) -> set[str]:
    """Return the patches whose files are among these, or whose code imports one of them."""
    found = set()
    for path in paths:
        found.add(of_patch(path))
        if path.startswith("lightning_patches/patches/") and not of_patch(path):
            word = re.compile(rf"\b{re.escape(Path(path).stem)}\b")
            found |= {name for name, text in _sources().items() if word.search(text)}
    return found - {""}


def of_patch(path: str) -> str:
    """Return the patch to which a file, diff, scenario or test belongs, by its name; "" if there is none."""
    if not path.startswith(("lightning_patches/patches/", "tests/patches/", "upstream/diffs/")):
        return ""
    words = [part.partition(".")[0].removeprefix("test_").replace("_", "-") for part in Path(path).parts[2:]]
    own = [name for name in _sources() for word in words if word == name or word.startswith(f"{name}-")]
    return max(own, key=len, default="")


@cache
def _sources() -> dict[str, str]:
    """Return the code of each patch."""
    files = [path for path in PATCHES.glob("*/*.py") if not path.name.startswith("_")]
    return {path.stem.replace("_", "-"): path.read_text(encoding="utf-8") for path in files}
