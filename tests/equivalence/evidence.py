"""What was seen, on paper: a line for all places in which a case was seen to do the same.

``upstream/FORMATS.md`` describes the files. A line has one digest for all that its places depend on. Where the digest
is another now, the line is stale: what it says was seen of other code. What each single place depended on stands beside
the file in an ignored one, ``*.cells``; a run on the same machine then runs again only what has changed.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Optional

from packaging.version import Version

from tests.support.arms import ROOT

import _releases  # isort: skip  (tests.support.arms has put scripts/ on the path)

DIRECTORY = ROOT / "upstream" / "evidence"
SIMULATED = "CPU; cases that need CUDA on the simulated device"
UNKNOWN = "-"
"""In place of a digest: the places of the line were seen with different code, and no state of it proves them all. In
place of a commit: it is not in the history."""
Place = tuple[str, str]
"""What a release was run as or with, ``"lightning"`` or ``"torch 2.2.2"``, "" if there is only one; and which."""


@dataclass(frozen=True)
class Seen:
    """What was seen of a case in one place.

    Args:
        case: which case, and of which arm.
        saw: in words.
        place: where.
        by: the place that was run instead, being the same source in all that was executed; ``None`` for this one.
        commit: that it was run on, "" if that is not noted.
        note: what there is to say about it.
        subject: digest of what it depended on when it was run; "" if that is not known any more.
        stale: what it depends on has changed since.
        line: digest of the line it was read from, and how many places that has.
        more: what else a later run may want to know; kept on this machine only.
    """

    case: str
    saw: str
    place: Place
    by: Optional[Place] = None
    commit: str = ""
    note: str = ""
    subject: str = ""
    stale: bool = False
    line: tuple[str, int] = ("", 0)
    more: dict[str, str] = field(default_factory=dict, compare=False)


def surroundings(device: str = SIMULATED) -> dict[str, Any]:
    """When and with what the scenarios run."""
    import torch

    return {"date": today(), "torch": torch.__version__, "python": platform.python_version(), "device": device}


def today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


def commit(*paths: str) -> str:
    """The commit that is checked out; :data:`UNKNOWN` if one of these files differs from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
        return done.stdout.strip()

    return UNKNOWN if git("status", "--porcelain", "--", *paths) else git("rev-parse", "--short=10", "HEAD") or UNKNOWN


@cache
def package() -> str:
    """What tells one state of the package from another: a digest of its files."""
    return package_in(ROOT)


def package_in(root: Path) -> str:
    """The same for another checkout."""
    directory = root / "lightning_patches"
    found = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.suffix in (".py", ".json"):
            found.update(f"{path.relative_to(directory)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:12]


# -------------------------------------------------------------------- places


def told(versions: Iterable[str]) -> str:
    """``"2.0.0 to 2.3.3, 2.4.0"``: releases of which none is between two neighbours are a span."""
    every = _every_release()
    places = sorted(map(every.index, versions))
    spans: list[list[int]] = []
    for number in places:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(every[a] if a == b else f"{every[a]} to {every[b]}" for a, b in spans)


def untold(text: str) -> list[str]:
    """The releases that :func:`told` has written down."""
    every, found = _every_release(), []
    for span in text.split(", "):
        first, _, last = span.partition(" to ")
        found += every[every.index(first) : every.index(last or first) + 1]
    return found


@cache
def _every_release() -> list[str]:
    every = {*_releases.versions("lightning"), *_releases.versions("pytorch-lightning"), *_releases.older_versions()}
    return sorted(every, key=Version)


def _places_told(seen: Iterable[Seen]) -> str:
    groups: dict[tuple[str, Optional[Place]], list[str]] = {}
    for one in seen:
        groups.setdefault((one.place[0], one.by), []).append(one.place[1])
    parts = []
    for (group, by), versions in groups.items():
        instead = f" by {' '.join(filter(None, by))}" if by else ""
        parts.append(f"{group} {told(versions)}{instead}".strip())
    return "; ".join(parts)


def _places_untold(text: str) -> Iterator[tuple[Place, Optional[Place]]]:
    for part in text.split("; "):
        where, _, instead = part.partition(" by ")
        group, versions = _split(where)
        by = _split(instead) if instead else None
        for version in untold(versions):
            yield (group, version), by


def _split(text: str) -> Place:
    """``"torch 2.2.2 2.1.4 to 2.2.5"`` -> ``("torch 2.2.2", "2.1.4 to 2.2.5")``"""
    words = text.split(" ")
    length = 0 if words[0][0].isdigit() else 2 if words[0] == "torch" else 1
    return " ".join(words[:length]), " ".join(words[length:])


# -------------------------------------------------------------------- the file

Now = Callable[[Seen], str]
"""Digest of what a case in a place depends on now; "" if there is no such case there any more."""


def read(path: Path, now: Now) -> tuple[dict[str, Any], list[Seen]]:
    """What the first lines of a file say, and what was seen in each place, stale or not; nothing without a file."""
    facts: dict[str, Any] = {}
    found: list[Seen] = []
    kept = _cells(path)
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            facts[name] = json.loads(value)
        elif line:
            found += _line_read(line, now, kept)
    return facts, found


def _line_read(line: str, now: Now, kept: dict[str, list[Any]]) -> list[Seen]:
    case, saw, where, digest, commit, note = line.split(" | ", 5)
    places = [
        Seen(case, saw, place, by, commit, json.loads(note) if note else "") for place, by in _places_untold(where)
    ]
    current = [now(one) for one in places]
    holds = all(current) and digest == _digest(places, current)
    found = []
    for one, subject in zip(places, current):
        known, more = kept.get(_cell(one), ("", {}))
        known = subject if holds else known
        stale = not known or known != subject
        found.append(replace(one, subject=known, stale=stale, line=(digest, len(places)), more=more))
    return found


def write(path: Path, facts: dict[str, Any], seen: Iterable[Seen]) -> None:
    """Write a file: ``facts`` on its first lines, then a line for all places in which a case did the same."""
    lines: dict[tuple[Any, ...], list[Seen]] = {}
    cells = {}
    for one in seen:
        line = "" if one.subject else one.line
        lines.setdefault((one.case, one.saw, one.commit, one.note, one.stale, line), []).append(one)
        if one.subject:
            cells[_cell(one)] = [one.subject, one.more]
    text = [f"# {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()]
    for (case, saw, commit, note, _, _), places in lines.items():
        places = sorted(places, key=lambda one: (one.place[0], Version(one.place[1])))
        note = json.dumps(note, ensure_ascii=False) if note else ""
        text.append(" | ".join((case, saw, _places_told(places), _digest_of(places), commit, note)))
    replace_file(path, "\n".join(text) + "\n")
    replace_file(path.with_suffix(".cells"), json.dumps(cells))


def _digest_of(places: list[Seen]) -> str:
    if all(one.subject for one in places):
        return _digest(places, [one.subject for one in places])
    digest, count = places[0].line
    return digest if count == len(places) else UNKNOWN


def _digest(places: list[Seen], subjects: list[str]) -> str:
    parts = sorted(f"{' '.join(one.place)} {subject}\n" for one, subject in zip(places, subjects))
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:12]


def _cell(one: Seen) -> str:
    return json.dumps((one.case, one.place, one.saw, one.commit, one.note))


def _cells(path: Path) -> dict[str, list[Any]]:
    cells = path.with_suffix(".cells")
    return json.loads(cells.read_text(encoding="utf-8")) if cells.exists() else {}


def replace_file(path: Path, text: str) -> None:
    """Write a file so that nobody sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
