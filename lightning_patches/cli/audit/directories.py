"""Find the files of a directory that may require Lightning, and list the files that were not read."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Set, Tuple

from lightning_patches.cli import _files
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.audit.requirements import lines_of

FILES = re.compile(
    r"(?:requirements.*|constraints.*)\.(?:txt|in)|pyproject\.toml|(?:uv|poetry|pdm|pixi)\.lock|pylock(?:\..*)?\.toml|"
    r"pipfile(?:\.lock)?|pixi\.toml|(?:environment|conda).*\.(?:ya?ml|lock)|.*\.ipynb|"
    r"(?:.*[.-])?(?:dockerfile|containerfile)(?:[.-].*)?"
)
"""Names of the files that are read, in lower case."""
LEFT_OUT = ("node_modules", "site-packages", "__pycache__", "build", "dist")
"""Skipped directories. Virtual environments and hidden directories except for ``.github`` are also skipped."""
MAX_DIRECTORIES = 20_000
MAX_DEPTH = 100
"""Most levels of directories."""
MAX_ENTRIES = 2_000_000
"""Most files and directories."""
MAX_FILES = 2_000
"""Most files that are read."""
MAX_SCRIPTS = 200
SCRIPTS_DEPTH = 2
"""Most levels of directories above a Python script that is read."""


@dataclass
class Listing:
    """The files of a directory.

    Args:
        files: files that may require Lightning, in the order of their depth.
        setups: ``setup.py`` and ``setup.cfg``, which are not read.
        scripts: Python scripts near the top.
        skipped: files and directories that were not read, each a sentence without its full stop.
        outside: links to directories outside of the project.
    """

    files: List[str] = field(default_factory=list)
    setups: List[str] = field(default_factory=list)
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
    searched: Set[str] = set()
    known: Set[str] = set()
    entries = 0

    def report(error: OSError) -> None:
        listing.skipped.append(f"{error.filename} cannot be read: {error.strerror or error}")

    for directory, names, files in os.walk(root, onerror=report, followlinks=True):
        searched.add(os.path.realpath(directory))
        entries += len(names) + len(files)
        if len(searched) > MAX_DIRECTORIES or entries > MAX_ENTRIES:
            limit = f"{MAX_ENTRIES} files" if entries > MAX_ENTRIES else f"{MAX_DIRECTORIES} directories"
            listing.skipped.append(f"{directory} and everything after it were not read: more than {limit}")
            break
        depth = 0 if directory == root else os.path.relpath(directory, root).count(os.sep) + 1
        paths = [os.path.normpath(os.path.join(directory, name)) for name in sorted(names)]
        paths = [path for path in paths if not _is_left_out(path)]
        if depth >= deepest:
            if deepest == MAX_DEPTH:
                listing.skipped += [f"{path} was not read: more than {MAX_DEPTH} levels deep" for path in paths]
            paths = []
        names[:] = [os.path.basename(path) for path in paths if _is_searched(path, root, searched, listing)]
        for name in sorted(files):
            _add_file(os.path.normpath(os.path.join(directory, name)), root, depth, known, listing)
    found = sorted(listing.files, key=lambda path: (path.count(os.sep), path))
    if len(found) > MAX_FILES:
        more = len(found) - MAX_FILES
        listing.skipped.append(f"{found[MAX_FILES]} and {more - 1} others were not read: more than {MAX_FILES} files")
    listing.files = found[:MAX_FILES]
    return listing


def _is_searched(path: str, root: str, searched: Set[str], listing: Listing) -> bool:
    """True if a subdirectory must be searched. Links that lead out are listed."""
    real = _files.inside(root, path)
    if real is None:
        text = f"{path} is a link that leads out of the project"
        if os.path.basename(path) == "requirements":
            listing.skipped.append(f"{text}, and was not read")
        else:
            listing.outside.append(text)
    return real is not None and real not in searched


def _add_file(path: str, root: str, depth: int, known: Set[str], listing: Listing) -> None:
    name, is_link = os.path.basename(path), os.path.islink(path)
    if _is_read(path):
        real = _files.inside(root, path)
        if real is None:
            listing.skipped.append(f"{path} is a link that leads out of the project, and was not read")
        elif real not in known:
            known.add(real)
            listing.files.append(path)
    elif not is_link and name in ("setup.py", "setup.cfg"):
        listing.setups.append(path)
    elif not is_link and depth <= SCRIPTS_DEPTH and name.endswith(".py") and len(listing.scripts) < MAX_SCRIPTS:
        listing.scripts.append(path)


def _is_left_out(path: str) -> bool:
    name = os.path.basename(path)
    hidden = name.startswith(".") and name != ".github"
    return hidden or name in LEFT_OUT or os.path.exists(os.path.join(path, "pyvenv.cfg"))


def _is_read(path: str) -> bool:
    directory, name = os.path.split(path)
    return (
        FILES.fullmatch(name.lower()) is not None
        or (os.path.basename(directory) == "requirements" and name.endswith((".txt", ".in")))
        or (os.path.join(".github", "workflows") in directory and name.endswith((".yml", ".yaml")))
    )


def unread_setups(listing: Listing) -> Iterator[Tuple[str, str]]:
    """Yield the distributions of Lightning that ``setup.py`` or ``setup.cfg`` name, each with a sentence.

    These files are not evaluated, since only a build can do that. For a file that cannot be read, the distribution is
    "".
    """
    for path in listing.setups:
        try:
            text = _files.read_text(path, _files.MAX_PARSED)
        except UsageError as error:
            yield "", str(error)
            continue
        first: Dict[str, int] = {}
        for number, name, _ in lines_of(_files.lines(text)):
            first.setdefault(name, number)
        for name, number in first.items():
            yield name, f"{path}, line {number}, names {name}, and was not read"


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
