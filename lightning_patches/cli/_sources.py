"""The items that readers of project files yield, and the places where included files are looked up."""

from __future__ import annotations

import os
import posixpath
from typing import Any, Callable, Iterator, NamedTuple, Optional, Union

from lightning_patches.cli import _files
from lightning_patches.cli._resolve import Group

MAX_COMMANDS = 1 << 20
"""Characters of the commands in one file that may install something. The lexer reads about a megabyte a second."""


class Place:
    """A directory of this machine. The files in it can be read, and no others.

    Args:
        root: the directory.
    """

    paths: Any = os.path
    """The module for the paths that are looked up here."""

    def __init__(self, root: str) -> None:
        self.root = root

    @property
    def outside(self) -> str:
        """The end of a sentence about a path that is not in this place."""
        return f"is not in the project, {self.root}"

    def locate(self, path: str) -> Optional[str]:
        """The local file for a path of this place; ``None`` if it is outside."""
        return path if _files.inside(self.root, path) else None


class Checkout(Place):
    """Where the commands of a workflow or a notebook run. The root of their file system is the directory.

    Args:
        root: the directory.
        within: the project; the directory must be inside it.
        directory: where the commands run, as a path of their file system.
    """

    paths: Any = posixpath

    def __init__(self, root: str, within: Place, directory: str = "/") -> None:
        super().__init__(root)
        self.within = within
        self.directory = directory
        self.left = MAX_COMMANDS
        """Characters of commands that may still be read."""
        self.commands = 0
        """The number of commands that were read. What different commands install is in different groups."""

    @property
    def outside(self) -> str:
        return "is not in the project, or not copied from it"

    def path(self, path: str) -> str:
        """The absolute path of a path in a command."""
        return posixpath.normpath(posixpath.join(self.directory, path))

    def locate(self, path: str) -> Optional[str]:
        found = os.path.normpath(os.path.join(self.root, path.lstrip("/")))
        real = _files.inside(self.root, found)
        return found if real and _files.inside(self.within.root, real) and os.path.isfile(real) else None

    def expanded(self, word: str) -> list[str]:
        """A word of a command, after the shell has replaced its variables."""
        return [word]


class Source(NamedTuple):
    """A file that a reader takes apart.

    Args:
        path: of this machine.
        text: of the file.
        place: where the files that it names are looked up.
        at: its path there.
    """

    path: str
    text: str
    place: Place
    at: str

    def beside(self, path: str) -> str:
        """The path of a file that is named relative to this one."""
        paths = self.place.paths
        return str(paths.normpath(paths.join(paths.dirname(self.at), path)))


class Spec(NamedTuple):
    """A requirement.

    Args:
        text: as pip takes it.
        line: on which it is, from 1; 0 if the reader does not know.
        after: without ``line``, the first line on which it may be.
        written: without ``line``, the text on its line besides the name.
        group: what else is installed with it, see :class:`~lightning_patches.cli._resolve.Pins`.
        is_locked: it is from a lock file.
        is_line: it is a line that pip reads, and so it must be a requirement or a path.
    """

    text: str
    line: int = 0
    after: int = 1
    written: str = ""
    group: Group = ()
    is_locked: bool = False
    is_line: bool = False


class Include(NamedTuple):
    """Another file that is read, too.

    Args:
        path: its path in ``place``.
        place: the place of the command or file that names it.
        line: the line that names it, 0 if unknown.
        reader: its reader; ``None`` to choose it by file name.
        group: the group of all its requirements.
        is_needed: without this file, the installed packages are unknown. False if a tool would look for one of several.
    """

    path: str
    place: Place
    line: int = 0
    reader: Optional[Callable[[Source], Iterator[Item]]] = None
    group: Group = ()
    is_needed: bool = True


class Unclear(NamedTuple):
    """A line or file that does not say which packages are installed.

    Args:
        text: a sentence without its full stop.
        if_none: it matters only if the file and its includes require no Lightning.
    """

    text: str
    if_none: bool = False


class Skipped(NamedTuple):
    """Something that was not looked at, although it may require Lightning; a sentence without its full stop."""

    text: str


class Locks(NamedTuple):
    """The project is locked by a tool for all Pythons that it allows."""


Item = Union[Spec, Include, Unclear, Skipped, Locks]
Reader = Callable[[Source], Iterator[Item]]
