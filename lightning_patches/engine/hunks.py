"""Parse our diffs, find their places in a file, and remove them from a forked file.

A diff has the paths and module names of the ``lightning`` package (``pytorch/tuner/lr_finder.py``,
``lightning.pytorch``). They are translated for ``pytorch_lightning`` and ``lightning_fabric``. It has the form of a
unified diff, without line numbers and without the path before the change. After the ``@@`` of a hunk is the qualified
name of the function or class with the change, and the range of releases if the hunk is not for all affected ones. The
hunk's context must occur there exactly once.

Each change in a forked file has a comment with the patch's name. The files of our diffs do not repeat it.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Iterable, Iterator, Optional, Tuple

from lightning_patches.engine import distributions
from lightning_patches.engine.distributions import MARKER, diffs_in
from lightning_patches.engine.ranges import in_ranges

_PACKAGE = Path(__file__).resolve().parents[1]
DIFFS = _PACKAGE.parent / "upstream" / "diffs"
"""Directory of our diffs: ``upstream/diffs`` in a checkout, ``diffs`` in the installed package."""
if not ((_PACKAGE.parent / "setup.cfg").is_file() and DIFFS.is_dir()):
    DIFFS = _PACKAGE / "diffs"


class DiffError(Exception):
    """A diff is malformed, or does not match the source."""


@dataclass(frozen=True)
class Hunk:
    """One change of a diff.

    Args:
        section: qualified name of the function or class with the change; "" for the whole file.
        lines: ``(kind, text)`` with kind " ", "-" or "+", and with the comment that names the patch.
        releases: the range of releases that the hunk is for; "" for all affected releases.
    """

    section: str
    lines: tuple[tuple[str, str], ...]
    releases: str = ""

    @property
    def before(self) -> list[str]:
        return [text for kind, text in self.lines if kind != "+"]

    @property
    def after(self) -> list[str]:
        return [text for kind, text in self.lines if kind != "-"]

    @property
    def is_new_file(self) -> bool:
        return not self.before


Changes = Tuple[Tuple[str, Tuple[Hunk, ...]], ...]
"""For each changed file: its path in the source tree (``pytorch/loops/fetchers.py``) and its hunks."""
_HUNK = re.compile(r"@@(?: ([\w.]+))?(?: ([<>=][<>=\d.,]*))?")


def parse_changes(name: str, body: str) -> Changes:
    """Parse the changes of a diff.

    Args:
        name: file name of the diff, for messages.
        body: its text below the header.

    Raises:
        DiffError: the text does not have the form of a diff.
    """
    start, *parts = re.split(r"^(?=\+\+\+ |@@)", body, flags=re.MULTILINE)
    changes: list[tuple[str, list[Hunk]]] = []
    for part in parts:
        heading, *lines = part.splitlines()
        if heading.startswith("+++ ") and not lines:
            changes.append((heading[4:], []))
            continue
        match = _HUNK.fullmatch(heading)
        content = [((line or " ")[0], line[1:]) for line in lines]
        kinds = {kind for kind, _ in content}
        if match is None or not changes or not kinds & {*"-+"} or not kinds <= {*" -+"}:
            raise DiffError(f"{name}: {heading!r} is neither the header of a file nor of a hunk that changes lines")
        marked = tuple(_marked(name.partition(".")[0], content))
        changes[-1][1].append(Hunk(match.group(1) or "", marked, match.group(2) or ""))
    if start or not changes or not all(hunks for _, hunks in changes):
        raise DiffError(f"{name}: the diff does not begin with a file, or it changes nothing in a file")
    return tuple((path, tuple(hunks)) for path, hunks in changes)


def for_release(changes: Changes, version: str) -> Changes:
    """Return the hunks for a release."""
    chosen = (
        (path, tuple(hunk for hunk in hunks if not hunk.releases or in_ranges(version, (hunk.releases,))))
        for path, hunks in changes
    )
    return tuple((path, hunks) for path, hunks in chosen if hunks)


def _marked(patch: str, lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Add the comment that names the patch above the first added line, unless an added line has it."""
    added = [text for kind, text in lines if kind == "+"]
    if not added or patch in diffs_in("\n".join(added)):
        return lines
    first = [kind for kind, _ in lines].index("+")
    code = next(filter(str.strip, added), "")
    indent = code[: len(code) - len(code.lstrip())]
    return [*lines[:first], ("+", f"{indent}# {MARKER}{patch}"), *lines[first:]]


def path_in(namespace: str, path: str) -> str:
    """``("pytorch_lightning", "fabric/wrappers.py")`` -> ``"lightning_fabric/wrappers.py"``."""
    part, _, rest = path.partition("/")
    return f"{distributions.PARTS[namespace][part].replace('.', '/')}/{rest}"


def line_in(namespace: str, line: str) -> str:
    """Return a line of a diff with the module names of ``namespace``."""
    if namespace != "lightning":
        for part, package in distributions.PARTS[namespace].items():
            line = line.replace(f"lightning.{part}", package)
    return line


@dataclass(frozen=True)
class Place:
    """Lines of a file and the lines that replace them. ``start`` is the index of the first line."""

    start: int
    old: list[str]
    new: list[str]


def locate(name: str, namespace: str, text: str, where: str, hunks: tuple[Hunk, ...], reverse: bool) -> list[Place]:
    """Find the places of a file's hunks.

    Args:
        name: file name of the diff, for messages.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        text: text of the file.
        where: the file's path, for messages.
        hunks: the diff's changes of that file.
        reverse: find the places where the hunks were applied.

    Raises:
        DiffError: a hunk's context is not found exactly once.
    """
    lines = text.split("\n")
    found: list[Place] = []
    for hunk in hunks:
        old, new = [line_in(namespace, line) for line in hunk.before], [line_in(namespace, line) for line in hunk.after]
        if reverse:
            old, new = new, old
        first, end = extent(text, hunk.section)
        if reverse:
            first = max(0, first - len(old))  # lines added in front of a definition are outside of it
        starts = [i for i in range(first, end - len(old) + 1) if lines[i : i + len(old)] == old]
        if len(starts) != 1:
            place_in_file = f"{where}, {hunk.section}" if hunk.section else where
            what = f"found {len(starts)} times" if starts else "not found"
            raise DiffError(f"{name}: context {what} in {place_in_file}: {old[0].strip()!r} ...")
        found.append(Place(starts[0], old, new))
    ordered = sorted(found, key=lambda place: place.start)
    if ordered != found or any(a.start + len(a.old) > b.start for a, b in zip(found, found[1:])):
        raise DiffError(f"{name}: hunks overlap or are out of order in {where}")
    return found


def apply_places(text: str, found: Iterable[Place]) -> str:
    """Return the text with the new lines in these places."""
    lines = text.split("\n")
    for place in reversed(list(found)):
        lines[place.start : place.start + len(place.old)] = place.new
    return "\n".join(lines)


def extent(text: str, section: str) -> tuple[int, int]:
    """Return the indexes of the first line and of the end of a function or class; "" means the whole text."""
    if not section:
        return 0, text.count("\n") + 1
    key = hashlib.sha256(text.encode()).digest()
    if key not in _extents:  # cached, since many files are the same in several releases
        _extents[key] = dict(_definitions(ast.parse(text).body))
    return _extents[key].get(section, (0, 0))


def lines_of(section: str, text: str) -> list[str]:
    """Return the lines of a function or class with its decorators; an empty list if it does not exist."""
    first, end = extent(text, section)
    return text.split("\n")[first:end]


_extents: dict[bytes, dict[str, tuple[int, int]]] = {}


def _definitions(statements: Iterable[ast.AST], inside: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the qualified name and the extent of each function and class."""
    for node in statements:
        below = inside
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield inside + node.name, (first - 1, node.end_lineno or node.lineno)
            below = f"{inside}{node.name}."
        for block in ("body", "handlers", "orelse", "finalbody"):
            yield from _definitions(getattr(node, block, ()), below)


def remove_diffs(names: Iterable[str], namespace: str, version: str, path: str, text: str) -> list[tuple[str, str]]:
    """Remove diffs from a forked file one by one, beginning with the last one that was applied.

    Args:
        names: the patches whose diffs are in the file.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        version: the release.
        path: path of the file in the source tree, ``"pytorch/loops/fetchers.py"``.
        text: text of the file.

    Returns:
        For each step, the removed patch and the text after the removal.

    Raises:
        DiffError: the file does not have a diff of this version, since another version of this package built the fork.
    """
    left = {name: dict(for_release(_changes(name), version)).get(path, ()) for name in sorted(names)}
    steps: list[tuple[str, str]] = []
    while left:
        for name, hunks in left.items():
            below = _without(name, namespace, path, text, hunks)
            if below is not None:
                break
        else:
            raise DiffError(f"{path} does not have the changes of {', '.join(left)} as these diffs make them")
        del left[name]
        steps.append((name, below))
        text = below
    return steps


def _without(name: str, namespace: str, path: str, text: str, hunks: tuple[Hunk, ...]) -> Optional[str]:
    try:
        below = apply_places(text, locate(name, namespace, text, path, hunks, reverse=True))
    except DiffError:
        return None
    return below if name not in diffs_in(below) else None


@lru_cache(maxsize=None)
def _changes(name: str) -> Changes:
    """Return the changes of a patch's diff; an empty tuple if this package does not have the diff."""
    file = DIFFS / f"{name}.patch"
    return parse_changes(file.name, file.read_text(encoding="utf-8").partition("\n---\n")[2]) if file.is_file() else ()
