"""Digests of each target's source in each release, to distinguish affected, fixed and unknown code.

``scripts/renew`` writes the data (``_fingerprints.py``) from the wheels of all releases since 1.8, and for some patches
also of 1.5 to 1.7. The digest of the whole file is looked up first, since hashing a file is ten times faster than
parsing it. The function is compared only if no release ships the file.
"""

from __future__ import annotations

import ast
import hashlib
import os
from functools import lru_cache
from typing import Any, NamedTuple, Optional, Union

from lightning_patches import system
from lightning_patches.engine.distributions import Part, diffs_in

MAX_SOURCE = 192 << 10
"""Largest module that is read, in bytes; the largest module of a release has 80 KB. Below Python 3.11, an expression
that is nested 130,000 levels deep (two bytes per level) crashes Python's parser."""
ABSENT = "absent"

_FunctionNode = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Source(NamedTuple):
    """The result of a comparison of one location in one installed package.

    Args:
        releases: releases that ship exactly this code; empty for unknown code.
        exists: True if the file exists. In a file that no release ships, the location must also exist.
        diffs: in a fork, the patches whose diffs are applied to the file.
        changed_by: the patches among them whose diffs change this location.
    """

    releases: frozenset[str]
    exists: bool
    diffs: frozenset[str] = frozenset()
    changed_by: frozenset[str] = frozenset()


def source_of(part: Part, location: str) -> Source:
    """Compare a location's source on disk with all releases. In a fork, our diffs are removed first.

    Args:
        part: the installed package.
        location: ``"pytorch.tuner.lr_finder:_lr_find"``.

    Raises:
        OSError: the file exists but cannot be read or parsed.
    """
    shipped = shipped_source(part, location)
    if shipped is not None:
        return shipped
    module, _, attribute = location.partition(":")
    path = part.file_of(module)
    text = system.read_regular(path, MAX_SOURCE).decode("utf-8", errors="replace")
    diffs = diffs_in(text)
    changed_by: frozenset[str] = frozenset()
    try:
        digest = function_digest(text, attribute)
        releases = _with_function(location, digest or ABSENT)
        if diffs and not releases:
            place = part.name + path[len(part.directory) :].replace(os.sep, "/")
            steps = _without_diffs(diffs, part.namespace, part.version, place, text)
            if steps:
                releases = _with_function(location, function_digest(steps[-1][1], attribute) or ABSENT)
                changed_by = _patches_changing(attribute, text, steps)
    except (RecursionError, MemoryError):
        raise OSError(0, "it is nested too deeply") from None
    return Source(releases, digest is not None, diffs, changed_by)


def shipped_source(part: Part, location: str) -> Optional[Source]:
    """Look at a location in a file that a release ships, or in one that is missing; ``None`` for any other file.

    Raises:
        OSError: the file exists but cannot be read.
    """
    module = location.partition(":")[0]
    path = part.file_of(module)
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return Source(_with_function(location, ABSENT), False)
    releases = _with_file(part.namespace, module, _digest_of(path, state.st_mtime_ns, state.st_size))
    return Source(releases, True) if releases else None


def state_of(part: Part, module: str) -> Optional[tuple[int, int]]:
    """Return the modification time and the size of a module's file; ``None`` if there is none."""
    try:
        state = os.stat(part.file_of(module))
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def carried_in(part: Part, location: str) -> frozenset[str]:
    """Return the patches whose diffs a location's file carries.

    Raises:
        OSError: the file cannot be read.
    """
    path = part.file_of(location.partition(":")[0])
    state = os.stat(path)
    return _carried_in(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=None)
def _carried_in(path: str, modified: int, size: int) -> frozenset[str]:
    return diffs_in(system.read_regular(path, MAX_SOURCE).decode("utf-8", errors="replace"))


@lru_cache(maxsize=8)
def _without_diffs(
    names: frozenset[str], namespace: str, version: str, path: str, text: str
) -> tuple[tuple[str, str], ...]:
    """Remove our diffs from a forked file one by one, see :func:`hunks.remove_diffs`.

    Returns an empty tuple if the file does not have the diffs of this version.
    """
    from lightning_patches.engine import hunks  # needed only for a fork

    try:
        return tuple(hunks.remove_diffs(names, namespace, version, path, text))
    except (hunks.DiffError, SyntaxError, ValueError):
        return ()


def _patches_changing(attribute: str, text: str, steps: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Return the patches whose diffs changed a function.

    Args:
        attribute: the function.
        text: the forked file.
        steps: the result of :func:`_without_diffs`.
    """
    from lightning_patches.engine.hunks import lines_of

    found = set()
    for name, below in steps:
        if lines_of(attribute, text) != lines_of(attribute, below):
            found.add(name)
        text = below
    return frozenset(found)


def known_releases() -> tuple[str, ...]:
    """Return all releases since 1.8, oldest first."""
    return tuple(_data()["releases"])


def older_releases() -> tuple[str, ...]:
    """Return the releases of ``pytorch-lightning`` 1.5 to 1.7. The data has them only for patches of these releases."""
    return tuple(_data()["older_releases"])


@lru_cache(maxsize=None)
def _digest_of(path: str, modified: int, size: int) -> str:
    """Return the digest of a file. Cached by modification time and size, since patches share files."""
    return file_digest(system.read_regular(path, MAX_SOURCE))


def file_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def function_digest(text: str, attribute: str) -> Optional[str]:
    """Return the digest of a function's source, the same in both namespaces; ``None`` if the function is missing."""
    source = function_source(text, attribute)
    if source is None:
        return None
    neutral = source.replace("pytorch_lightning", "lightning.pytorch")
    for part in ("fabric", "lite"):
        neutral = neutral.replace(f"lightning_{part}", f"lightning.{part}")
    return hashlib.sha256(neutral.encode()).hexdigest()[:16]


def function_source(text: str, attribute: str) -> Optional[str]:
    """Return the source of ``attribute`` (``"f"``, ``"Class.method"``) with decorators; ``None`` if it is missing."""
    try:
        node: Any = _parsed(text)
    except (SyntaxError, ValueError):  # ValueError: a null byte, up to Python 3.11.3
        return None
    for name in attribute.split("."):
        node = _definition(node.body, name)
        if node is None:
            return None
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    return "\n".join(line.rstrip() for line in lines)


@lru_cache(maxsize=1)
def _parsed(text: str) -> ast.Module:
    """Parse a file. The last result is cached, since several patches have targets in the same file."""
    return ast.parse(text)


def _definition(body: list[ast.stmt], name: str) -> Optional[Union[_FunctionNode, ast.ClassDef]]:
    found = None
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == name:
                found = node  # the last definition counts, as at run time: typing overloads come before it
        elif isinstance(node, (ast.If, ast.Try)):
            found = _definition([*node.body, *node.orelse], name) or found
    return found


def _data() -> dict[str, Any]:
    from lightning_patches.engine._fingerprints import DATA

    return DATA


@lru_cache(maxsize=None)
def _with_file(namespace: str, module: str, digest: str) -> frozenset[str]:
    """Return the releases that ship this file."""
    return _releases(_data()["files"].get(namespace, {}).get(module, ""), digest)


@lru_cache(maxsize=None)
def _with_function(location: str, digest: str) -> frozenset[str]:
    """Return the releases that have this code at a location."""
    return _releases(_data()["functions"].get(location, ""), digest)


def _releases(row: str, digest: str) -> frozenset[str]:
    data = _data()
    releases = [*data["releases"], *data.get("older_releases", [])]
    return frozenset(releases[number] for number in numbers(row, digest))


def numbers(row: str, digest: str) -> list[int]:
    """Return the numbers of the releases that have a digest.

    Args:
        row: digests with ranges of release numbers, ``"26dfb9466f5fb7e4 0-11 17-17, absent 12-16"``. Rows are texts,
            since Python loads a text much faster than a dict.
        digest: a digest, or ``ABSENT``.
    """
    spans = row.partition(f"{digest} ")[2].partition(",")[0]
    ends = (map(int, span.split("-")) for span in spans.split())
    return [number for first, last in ends for number in range(first, last + 1)]
