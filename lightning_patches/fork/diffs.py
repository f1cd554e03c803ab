"""Read and apply our diffs against upstream's source (``upstream/diffs/*.patch``).

A file has a unified diff (see :mod:`lightning_patches.engine.hunks`) below a short header. The header has only fields
that are not in the patch's record. The complete DEP-3 header is generated when the file is read.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Callable, Iterable, Literal, Optional

from lightning_patches import patches as catalogue
from lightning_patches.engine.hunks import (
    DIFFS,
    Changes,
    DiffError,
    Hunk,
    apply_places,
    for_release,
    line_in,
    locate,
    parse_changes,
    path_in,
)
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.fork import carried
from lightning_patches.patch import Patch

REPOSITORY = "https://github.com/Lightning-AI/pytorch-lightning"
NUMBER = 3
"""N in a fork's version ``2.2.5+patches.N``. Each version of this package has another number, since its diffs
differ."""
State = Literal["applied", "applies", "does not apply"]
Reader = Callable[[str], Optional[str]]
"""Returns the text of a release's file by its path in the wheel, or ``None`` if the file does not exist."""


@dataclass(frozen=True)
class Diff:
    """A file of ``upstream/diffs/``: a patch's change.

    Args:
        path: path of the file.
        header: the complete DEP-3 fields; a field may occur more than once.
        typed: the fields that are written in the file.
        changes: path in the source tree (``pytorch/loops/fetchers.py``) and hunks of each changed or carried file.
    """

    path: Path
    header: dict[str, list[str]] = field(hash=False)
    typed: dict[str, list[str]] = field(hash=False)
    changes: Changes

    @property
    def name(self) -> str:
        """Name of the patch."""
        return self.path.stem

    @property
    def digest(self) -> str:
        """sha256 of all that the diff says."""
        return hashlib.sha256(f"{header_text(self.header)}{self.changes}".encode()).hexdigest()

    def is_for(self, version: str) -> bool:
        return in_ranges(version, tuple(self.header["Affected"]))

    def at(self, version: str) -> Diff:
        """Return the diff with the hunks for a release."""
        return replace(self, changes=for_release(self.changes, version))


def series(directory: Path = DIFFS) -> list[Diff]:
    """Return all diffs in the order of the catalogue, in which they are applied.

    Raises:
        DiffError: a file is malformed, no patch has its name, or the directory of diffs is missing.
    """
    if not directory.is_dir():
        raise DiffError(
            f"this copy of lightning-patches has no diffs ({directory}): use an installed lightning-patches"
        )
    order = {patch.name: number for number, patch in enumerate(catalogue.all_patches())}
    files = sorted(directory.glob("*.patch"))
    unknown = [path.name for path in files if path.stem not in order]
    if unknown:
        raise DiffError(f"no patch has the name of {', '.join(unknown)}")
    return sorted(map(read, files), key=lambda diff: order[diff.name])


def read(path: Path) -> Diff:
    """Parse a file, complete its header, and add the files that it carries.

    Raises:
        DiffError: the file is not a diff with a header.
        LookupError: no patch has the file's name.
    """
    return _parsed(path, path.read_text(encoding="utf-8"))


@lru_cache(maxsize=None)
def _parsed(path: Path, text: str) -> Diff:
    head, separator, body = text.partition("\n---\n")
    if not separator:
        raise DiffError(f"{path.name}: no line '---' after the header")
    typed: dict[str, list[str]] = {}
    name = ""
    for line in head.splitlines():
        if line.startswith(" ") and name:
            typed[name][-1] += "\n" + line[1:]
            continue
        match = re.match(r"([A-Z][A-Za-z-]*):(?: (.*))?$", line)
        if match is None:
            raise DiffError(f"{path.name}: {line!r} is not a header field")
        name = match.group(1)
        typed.setdefault(name, []).append(match.group(2) or "")
    patch = record(path.stem)
    changes = (*parse_changes(path.name, body), *carried.files(patch.name, typed.get("Carries", [])))
    return Diff(path, header_of(typed, patch), typed, changes)


def apply(diff: Diff, namespace: str, reader: Reader) -> dict[str, str]:
    """Apply a diff to a release's files.

    Args:
        diff: the diff.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        reader: returns the current files, with the changes of earlier diffs.

    Returns:
        New text of each changed file, by its path in the wheel.

    Raises:
        DiffError: a hunk's context does not occur exactly once, or the change is already made.
    """
    if is_applied(diff, namespace, reader):
        raise DiffError(f"{diff.path.name}: the diff is already applied")
    changed = {}
    for path, hunks in diff.changes:
        where = path_in(namespace, path)
        text = reader(where)
        if hunks[0].is_new_file:
            if text is not None:
                raise DiffError(f"{diff.path.name}: {where} already exists")
            changed[where] = _new_file(namespace, hunks)
            continue
        if text is None:
            raise DiffError(f"{diff.path.name}: {where} does not exist")
        changed[where] = apply_places(text, locate(diff.path.name, namespace, text, where, hunks, reverse=False))
    return changed


def _new_file(namespace: str, hunks: tuple[Hunk, ...]) -> str:
    return "\n".join(line_in(namespace, line) for line in hunks[0].after) + "\n"


def state(diff: Diff, namespace: str, reader: Reader) -> tuple[State, str]:
    """Return the state of a diff in a release's files, and the reason if it does not apply."""
    if is_applied(diff, namespace, reader):
        return "applied", ""
    try:
        apply(diff, namespace, reader)
    except DiffError as error:
        return "does not apply", str(error)
    return "applies", ""


def is_applied(diff: Diff, namespace: str, reader: Reader) -> bool:
    """True if all changes of the diff are present."""
    for path, hunks in diff.changes:
        where = path_in(namespace, path)
        text = reader(where)
        if text is None:
            return False
        if hunks[0].is_new_file:
            if text != _new_file(namespace, hunks):
                return False
            continue
        try:
            locate(diff.path.name, namespace, text, where, hunks, reverse=True)
        except DiffError:
            return False
    return True


def for_tools(diff: Diff, reader: Reader) -> str:
    """Format a diff with line numbers and the complete header, for other tools and a release of ``lightning``.

    Raises:
        DiffError: the diff does not apply to the release.
    """
    parts = [header_text(diff.header)]
    for path, text in apply(diff, "lightning", reader).items():
        old, name = reader(path), path.partition("/")[2]
        files = f"a/{name}" if old is not None else "/dev/null", f"b/{name}"
        parts += difflib.unified_diff((old or "").splitlines(True), text.splitlines(True), *files)
    return "".join(parts)


def selected(version: str, names: Optional[Iterable[str]] = None, diffs: Optional[list[Diff]] = None) -> list[Diff]:
    """Return the diffs for a release, in the order in which they are applied.

    Args:
        version: the release.
        names: names of the patches to include; ``None`` for all.
        diffs: the result of :func:`series`, if it was read before.

    Raises:
        LookupError: there is no patch with a diff for a name.
    """
    everything = series() if diffs is None else diffs
    wanted = None if names is None else set(names)
    unknown = (wanted or set()) - {diff.name for diff in everything}
    if unknown:
        raise LookupError(f"there is no diff for {', '.join(sorted(unknown))}")
    return [d.at(version) for d in everything if (wanted is None or d.name in wanted) and d.is_for(version)]


def apply_all(diffs: Iterable[Diff], namespace: str, reader: Reader) -> dict[str, str]:
    """Apply diffs one after the other, in memory.

    Returns:
        New text of each changed file, by its path in the wheel.

    Raises:
        DiffError: a diff does not apply.
    """
    changed: dict[str, str] = {}

    def current(path: str) -> Optional[str]:
        return changed[path] if path in changed else reader(path)

    for diff in diffs:
        changed.update(apply(diff, namespace, current))
    return changed


def header_of(typed: dict[str, list[str]], patch: Patch) -> dict[str, list[str]]:
    """Return the complete header of a diff, from the patch's record and the fields in the file.

    The file states the description and the difference from the official fix, and the origin only if the diff is not a
    backport.
    """
    upstream = patch.upstream
    pulls = [f"{REPOSITORY}/pull/{number}" for number in upstream.pull_requests]
    bugs = [f"{REPOSITORY}/issues/{number}" for number in upstream.issues] or pulls[:1]
    way = "".join(typed.get("Origin", [])) or ("backport" if patch.fixed_in else "other")
    origin = (" " if " " in way else ", ").join(filter(None, (way, ",\n".join(pulls))))
    if upstream.commit:
        origin += f"\n({REPOSITORY}/commit/{upstream.commit})"
    header = {
        "Description": ["\n".join([patch.title, *typed.get("Description", [])])],
        "Origin": [origin],
        "Bug": bugs,
        "Forwarded": [] if pulls else ["no"],
        "Applied-Upstream": [patch.fixed_in or "no"],
        "Affected": list(patch.affected_known),
    }
    return {**header, **{name: values for name, values in typed.items() if name not in ("Description", "Origin")}}


def header_text(header: dict[str, list[str]]) -> str:
    """Format a header, including the line ``---`` at its end."""
    fields = [f"{name}: {value}" for name, values in header.items() for value in values]
    return "".join(field.replace("\n", "\n ") + "\n" for field in fields) + "---\n"


def record(name: str) -> Patch:
    """Return the patch with this name.

    Raises:
        LookupError: there is no such patch.
    """
    for patch in catalogue.all_patches():
        if patch.name == name:
            return patch
    raise LookupError(f"there is no patch {name}")
