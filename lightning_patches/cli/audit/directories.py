"""Find the files of a directory that may require Lightning, and list the files that were not read."""

from __future__ import annotations

import os
import re
from collections import deque
from dataclasses import dataclass, field
from typing import Iterable, Iterator, List, Set, Tuple

from lightning_patches.cli import _files
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.audit.sources.items import Gap, Kind
from lightning_patches.cli.audit.sources.notebook import IMPORT
from lightning_patches.cli.audit.sources.readers import is_read_always

LEFT_OUT = ("node_modules", "site-packages", "__pycache__", "build", "dist")
"""Skipped directories. Virtual environments and hidden directories except for ``SHOWN`` are also skipped."""
SHOWN = (
    *(".github", ".circleci", ".gitlab", ".devcontainer", ".docker", ".binder", ".ci", ".buildkite"),
    ".azure-pipelines",
)
MAX_DIRECTORIES = 20_000
MAX_DEPTH = 100
"""Most levels of directories."""
MAX_ENTRIES = 2_000_000
"""Most files and directories."""
MAX_FILES = 2_000
"""Most files that are read."""
MAX_PEEKED = 1 << 20
"""Largest other file whose text is searched, in bytes."""
MAX_OTHERS = 20_000
"""Most other files whose text is searched."""
MAX_SCRIPTS = 200
SCRIPTS_DEPTH = 2
"""Most levels of directories above a Python script that is read."""


@dataclass
class Listing:
    """The files of a directory.

    Args:
        files: files that may require Lightning, in the order of their depth.
        others: other files.
        scripts: Python scripts near the top.
        skipped: files and directories that were not read, each a sentence without its full stop.
        outside: links to directories outside of the project.
    """

    files: List[str] = field(default_factory=list)
    others: List[str] = field(default_factory=list)
    scripts: List[str] = field(default_factory=list)
    skipped: List[str] = field(default_factory=list)
    outside: List[str] = field(default_factory=list)


def list_files(root: str, deepest: int = MAX_DEPTH) -> Listing:
    """List the files of a directory and its subdirectories. Links are followed if they stay inside.

    Args:
        root: the directory.
        deepest: the number of levels below the directory that are searched.
    """
    listing = Listing()
    walk = _Walk(root, deepest, listing)
    walk.search([(root, 0)])
    while walk.linked_directories:  # follow links last, so that directories are listed under their real names
        links, walk.linked_directories = walk.linked_directories, []
        walk.search(links)
    known = {os.path.realpath(path) for path in listing.files} if walk.linked_files else set()
    for path in walk.linked_files:
        real = _files.inside(root, path)
        if real is None:
            listing.skipped.append(f"{path} is a link that leads out of the project, and was not read")
        elif real not in known:
            known.add(real)
            listing.files.append(path)
    found = sorted(listing.files, key=lambda path: (path.count(os.sep), path))
    if len(found) > MAX_FILES:
        more = len(found) - MAX_FILES
        listing.skipped.append(f"{found[MAX_FILES]} and {more - 1} others were not read: more than {MAX_FILES} files")
    listing.files = found[:MAX_FILES]
    listing.others.sort(key=lambda path: (path.count(os.sep), path))
    return listing


@dataclass
class _Walk:
    root: str
    deepest: int
    listing: Listing
    linked_files: List[str] = field(default_factory=list)
    linked_directories: List[Tuple[str, int]] = field(default_factory=list)
    seen: Set[Tuple[int, int]] = field(default_factory=set)
    entries: int = 0
    is_full: bool = False

    def search(self, directories: List[Tuple[str, int]]) -> None:
        """Search directories, which are given with their depths. Search upper directories first."""
        left = deque(directories)
        while left:
            place, depth = left.popleft()
            if len(self.seen) >= MAX_DIRECTORIES:
                self._stop(place, f"more than {MAX_DIRECTORIES} directories")
            if self.is_full:
                return
            try:
                state = os.stat(place)
                if (state.st_dev, state.st_ino) in self.seen:
                    continue
                self.seen.add((state.st_dev, state.st_ino))
                with os.scandir(place) as entries:
                    left += [(path, depth + 1) for path in sorted(self._list(entries, depth))]
            except OSError as error:
                self.listing.skipped.append(f"{place} cannot be read: {error.strerror or error}")

    def _stop(self, path: str, why: str) -> None:
        if not self.is_full:
            self.listing.skipped.append(f"{path} and everything after it were not read: {why}")
        self.is_full = True

    def _list(self, entries: Iterable[os.DirEntry[str]], depth: int) -> Iterator[str]:
        """Add the files of a directory to the listing, and yield its subdirectories."""
        for entry in entries:
            self.entries += 1
            if self.entries > MAX_ENTRIES:
                self._stop(entry.path, f"more than {MAX_ENTRIES} files")
                return
            path, is_link = os.path.normpath(entry.path), entry.is_symlink()
            if not _is_directory(entry):
                self._list_file(path, entry.name, is_link, depth)
            elif not _is_left_out(path) and self._is_searched(path, entry.name, is_link, depth):
                yield path

    def _is_searched(self, path: str, name: str, is_link: bool, depth: int) -> bool:
        """True if a directory is searched now. Links are searched later, or listed."""
        if depth >= self.deepest:
            if self.deepest == MAX_DEPTH:
                self.listing.skipped.append(f"{path} was not read: more than {MAX_DEPTH} levels deep")
        elif not is_link:
            return True
        elif _files.inside(self.root, path):
            self.linked_directories.append((path, depth + 1))
        elif name == "requirements":
            self.listing.skipped.append(f"{path} is a link that leads out of the project, and was not read")
        else:
            self.listing.outside.append(path)
        return False

    def _list_file(self, path: str, name: str, is_link: bool, depth: int) -> None:
        if is_read_always(path):
            (self.linked_files if is_link else self.listing.files).append(path)
        elif not is_link:
            if len(self.listing.others) < MAX_OTHERS:
                self.listing.others.append(path)
            if depth <= SCRIPTS_DEPTH and name.endswith(".py") and len(self.listing.scripts) < MAX_SCRIPTS:
                self.listing.scripts.append(path)


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _is_left_out(path: str) -> bool:
    name = os.path.basename(path)
    hidden = name.startswith(".") and name not in SHOWN
    return hidden or name in LEFT_OUT or os.path.exists(os.path.join(path, "pyvenv.cfg"))


_IMPORTS = re.compile(rb"^[ \t]*(?:import|from)[ \t]+lightning_patches\b", re.MULTILINE)


def imports_patches(listing: Listing) -> bool:
    """True if a script near the top of a directory imports ``lightning_patches``."""
    for path in listing.scripts:
        try:
            if _IMPORTS.search(_files.read(path, _files.MAX_SCRIPT)):
                return True
        except UsageError:
            continue
    return False


def mentions(paths: Iterable[str]) -> Iterator[Gap]:
    """Yield the files that are not supported, and that require, install or import Lightning."""
    for path in paths:
        text = peek(path)
        lines = _files.lines(text) if "lightning" in text.lower() else []
        if any(map(IMPORT.match, lines)):
            yield Gap(path, "imports Lightning, and no file here requires a release", Kind.NO_RELEASE)
        line = next((number for number, line in enumerate(lines, 1) if _NAMES_LIGHTNING.search(line)), 0)
        if line:
            yield Gap(f"{path}, line {line},", "names Lightning in a form that `audit` does not read")


def peek(path: str) -> str:
    """Return the text of a file; "" for files that are large, or not text."""
    try:
        content = _files.read(path, MAX_PEEKED)
    except UsageError:
        return ""
    return "" if b"\0" in content[:4096] else content.decode("utf-8", "replace")


_NAME = r"(?<![\w./-])(?:pytorch[-_])?lightning(?:\[[\w, ]*\])?(?![\w/-]|\.\w)"
_NAMES_LIGHTNING = re.compile(
    rf"^(?!\s*#).*(?:\b(?:install|add)\b.*{_NAME}|{_NAME}[\"']?\s*(?:[=<>~!]=?|:|\s)\s*[\"']?[=<>~^]*\s*v?\d+\.)|"
    r"^[\s*\"'-]*pytorch[-_]lightning[\"',\s]*$",
    re.IGNORECASE,
)
"""A line that installs Lightning, or requires a release of it."""
