"""Parse our diffs, find their places in a file, and remove them from a forked file.

A diff has the paths and module names of the ``lightning`` package (``pytorch/tuner/lr_finder.py``,
``lightning.pytorch``). They are translated for ``pytorch_lightning`` and ``lightning_fabric``. The text after the
``@@`` of a hunk is the qualified name of the function or class that the hunk belongs to. The hunk's context must occur
there exactly once. Line numbers are not used here; they are for readers and for ``patch --fuzz=0``, which gives the
same files.

Each change in a forked file has a comment with the patch's name. The files of our diffs do not repeat it.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Iterable, Iterator, Optional, Tuple

from lightning_patches.engine import distributions
from lightning_patches.engine.distributions import MARKER, diffs_in

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
        numbers: number of the first line before and after the change, in the newest affected release.
    """

    section: str
    lines: tuple[tuple[str, str], ...]
    numbers: tuple[int, int]

    @property
    def before(self) -> list[str]:
        return [text for kind, text in self.lines if kind != "+"]

    @property
    def after(self) -> list[str]:
        return [text for kind, text in self.lines if kind != "-"]

    @property
    def is_new_file(self) -> bool:
        return self.numbers[0] == 0


Changes = Tuple[Tuple[str, Tuple[Hunk, ...]], ...]
"""For each changed file: its path in the source tree (``pytorch/loops/fetchers.py``) and its hunks."""


def parse_changes(name: str, body: str) -> Changes:
    """Parse the changes of a diff.

    Args:
        name: file name of the diff, for messages.
        body: its text below the header.

    Raises:
        DiffError: the text is not a unified diff, or a hunk has another number of lines than its header states.
    """
    lines = body.splitlines()
    changes: list[tuple[str, list[Hunk]]] = []
    position = 0
    while position < len(lines):
        line, following = lines[position], "".join(lines[position + 1 : position + 2])
        path = following[len("+++ b/") :]
        if following.startswith("+++ b/") and line in ("--- /dev/null", f"--- a/{path}"):
            changes.append((path, []))
            position += 2
            continue
        match = re.match(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@ ?(.*)$", line)
        if match is None or not changes:
            raise DiffError(f"{name}: {line!r} is neither the header of a file nor of a hunk")
        position += 1
        content: list[tuple[str, str]] = []
        left = [int(match.group(2)), int(match.group(4))]
        while position < len(lines) and left != [0, 0]:
            kind, text = (lines[position] or " ")[0], lines[position][1:]
            if kind not in " -+":
                raise DiffError(f"{name}: {match.group(0)!r} has fewer lines than its header states")
            left = [left[0] - (kind != "+"), left[1] - (kind != "-")]
            content.append((kind, text))
            position += 1
        if left != [0, 0] or all(kind == " " for kind, _ in content):
            raise DiffError(f"{name}: {match.group(0)!r} has another number of lines than its header states")
        numbers = int(match.group(1)), int(match.group(3))
        changes[-1][1].append(Hunk(match.group(5), tuple(_marked(name.partition(".")[0], content)), numbers))
    if not changes or not all(hunks for _, hunks in changes):
        raise DiffError(f"{name}: the diff changes nothing")
    return tuple((path, tuple(hunks)) for path, hunks in changes)


def _marked(patch: str, lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Add the comment that names the patch above the first added line, unless an added line has it."""
    added = [text for kind, text in lines if kind == "+"]
    if not added or patch in diffs_in("\n".join(added)):
        return lines
    first = [kind for kind, _ in lines].index("+")
    code = next(filter(str.strip, added), "")
    indent = code[: len(code) - len(code.lstrip())]
    return [*lines[:first], ("+", f"{indent}# {MARKER}{patch}"), *lines[first:]]


def lines_in_file(patch: str, hunk: Hunk) -> list[tuple[str, str]]:
    """Return a hunk's lines as our files have them.

    They are without the comment that :func:`parse_changes` adds. Lines that a change without context removes and adds
    again are context.
    """
    first, *others = [line for line in hunk.lines if line[0] == "+"] or [("", "")]
    is_comment = bool(others) and first[1].strip() == f"# {MARKER}{patch}"
    lines = [line for line in hunk.lines if line is not first or not is_comment]
    if any(kind == " " for kind, _ in lines):
        return lines
    old, new = ([text for kind, text in lines if kind == sign] for sign in "-+")
    start = len(os.path.commonprefix([old, new]))
    end = len(os.path.commonprefix([old[start:][::-1], new[start:][::-1]]))
    if start + end == len(new):
        return lines  # the comment needs an added line
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    parts = ((" ", old[:start]), ("-", removed), ("+", added), (" ", old[len(old) - end :]))
    return [(kind, text) for kind, part in parts for text in part]


def text_of(changes: Changes) -> str:
    """Format changes as a unified diff for other tools."""
    parts = []
    for path, hunks in changes:
        old = "/dev/null" if hunks[0].is_new_file else f"a/{path}"
        parts += [f"--- {old}\n+++ b/{path}\n", *(text_of_hunk(_balanced(hunk)) for hunk in hunks)]
    return "".join(parts)


def _balanced(hunk: Hunk) -> Hunk:
    """Return a hunk with as much context before its change as after it.

    ``patch`` searches a hunk with unequal context only at the start or the end of the file.
    """
    changed = [index for index, (kind, _) in enumerate(hunk.lines) if kind != " "]
    before, after = changed[0], len(hunk.lines) - 1 - changed[-1]
    if before == after:
        return hunk
    equal = min(before, after)
    middle = replace(hunk, lines=hunk.lines[equal : len(hunk.lines) - equal])
    lines = [("-", text) for text in middle.before] + [("+", text) for text in middle.after]
    return replace(hunk, lines=(*hunk.lines[:equal], *lines, *hunk.lines[len(hunk.lines) - equal :]))


def text_of_hunk(hunk: Hunk) -> str:
    before, after = hunk.numbers
    heading = f"@@ -{before},{len(hunk.before)} +{after},{len(hunk.after)} @@ {hunk.section}".rstrip()
    return "".join(f"{line}\n" for line in [heading, *(kind + text for kind, text in hunk.lines)])


# -------------------------------------------------------------------- namespaces


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


# -------------------------------------------------------------------- places of hunks


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


# -------------------------------------------------------------------- removal of diffs


def remove_diffs(names: Iterable[str], namespace: str, path: str, text: str) -> list[tuple[str, str]]:
    """Remove diffs from a forked file one by one, beginning with the last one that was applied.

    Args:
        names: the patches whose diffs are in the file.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        path: path of the file in the source tree, ``"pytorch/loops/fetchers.py"``.
        text: text of the file.

    Returns:
        For each step, the removed patch and the text after the removal.

    Raises:
        DiffError: the file does not have a diff of this version, since another version of this package built the fork.
    """
    left = {name: [hunks for file in _files(name) for hunks in _hunks(file, path)] for name in sorted(names)}
    steps: list[tuple[str, str]] = []
    while left:
        for name, several in left.items():
            below = _without(name, namespace, path, text, several)
            if below is not None:
                break
        else:
            raise DiffError(f"{path} does not have the changes of {', '.join(left)} as these diffs make them")
        del left[name]
        steps.append((name, below))
        text = below
    return steps


def _without(name: str, namespace: str, path: str, text: str, several: list[tuple[Hunk, ...]]) -> Optional[str]:
    for hunks in several:
        try:
            below = apply_places(text, locate(name, namespace, text, path, hunks, reverse=True))
        except DiffError:
            continue
        if name not in diffs_in(below):  # else the file has the diff of another release, with more hunks
            return below
    return None


@lru_cache(maxsize=None)
def _files(name: str) -> tuple[Path, ...]:
    """Return the files of a patch's diffs. A patch has several if ranges of releases need different diffs."""
    return tuple(path for path in sorted(DIFFS.glob("*.patch")) if path.name.partition(".")[0] == name)


@lru_cache(maxsize=None)
def _hunks(file: Path, path: str) -> tuple[tuple[Hunk, ...], ...]:
    """Return a diff's hunks in one file of the source tree; an empty tuple if the diff does not change that file."""
    body = file.read_text(encoding="utf-8").partition("\n---\n")[2]
    return tuple(hunks for changed, hunks in parse_changes(file.name, body) if changed == path)
