"""The items that readers yield, and the file systems in which they find the paths of a file."""

from __future__ import annotations

import os
import posixpath
from typing import Any, Callable, Iterator, NamedTuple, Optional, Tuple, Union

from lightning_patches.cli import _files

Group = Tuple[str, ...]
"""Packages that are installed together: by one command of a Dockerfile, or with one extra of a project."""


class Place:
    """A directory on this machine. Only files in it can be read.

    Args:
        root: the directory.
    """

    paths: Any = os.path
    """The module for the syntax of paths in this place."""

    def __init__(self, root: str) -> None:
        self.root = root

    @property
    def outside(self) -> str:
        """The end of a sentence about a path outside of this place."""
        return f"is not in the project, {self.root}"

    def locate(self, path: str) -> Optional[str]:
        """Return the path on this machine; ``None`` if it is outside of this place."""
        return path if _files.inside(self.root, path) else None


class Checkout(Place):
    """The file system in which commands of a workflow or notebook run. Its root is a directory of the project.

    Args:
        root: the directory.
        project: the project. Files outside of it are not read, even if links in ``root`` lead to them.
    """

    paths: Any = posixpath

    def __init__(self, root: str, project: Place) -> None:
        super().__init__(root)
        self._project = project

    @property
    def outside(self) -> str:
        return "is not in the project, or not copied from it"

    def locate(self, path: str) -> Optional[str]:
        found = os.path.normpath(os.path.join(self.root, path.lstrip("/")))
        real = _files.inside(self.root, found)
        return found if real and _files.inside(self._project.root, real) and os.path.isfile(real) else None


class Source(NamedTuple):
    """A file to read.

    Args:
        path: its path on this machine.
        text: its content.
        place: the file system for the paths in the file.
        path_there: the file's path in ``place``.
        context: for a Dockerfile, the build context of ``docker build``; "" for the directory of the file.
    """

    path: str
    text: str
    place: Place
    path_there: str
    context: str = ""

    @property
    def directory(self) -> str:
        return os.path.dirname(self.path) or "."

    def beside(self, path: str) -> str:
        """Resolve a path that is relative to this file."""
        paths = self.place.paths
        return str(paths.normpath(paths.join(paths.dirname(self.path_there), path)))


class Spec(NamedTuple):
    """A requirement.

    Args:
        text: the requirement in pip's syntax.
        line: its line, from 1; 0 if the reader does not know it.
        after: if ``line`` is 0, the first line that may have the requirement.
        written: if ``line`` is 0, other text of that line.
        group: the group with which it is installed.
        is_locked: True if it is from a lock file.
        is_line: True if pip reads it as a line of a file, so that it must be a requirement or a path.
    """

    text: str
    line: int = 0
    after: int = 1
    written: str = ""
    group: Group = ()
    is_locked: bool = False
    is_line: bool = False


class Include(NamedTuple):
    """Another file to read.

    Args:
        path: its path in ``place``.
        place: the file system of the file or command that names it.
        line: the line that names it; 0 if unknown.
        group: the group of all its requirements.
        is_requirements_file: True if pip reads it as a requirements file, independent of its name.
        is_needed: False if the command also works without the file.
    """

    path: str
    place: Place
    line: int = 0
    group: Group = ()
    is_requirements_file: bool = False
    is_needed: bool = True


class Unclear(NamedTuple):
    """A line or file whose packages are unknown.

    Args:
        text: a sentence without its full stop.
        if_none: True if this matters only if the file and its includes do not require Lightning.
    """

    text: str
    if_none: bool = False


class Skipped(NamedTuple):
    """A sentence, without its full stop, about a part that was not read, although it may require Lightning."""

    text: str


class Locks(NamedTuple):
    """A sign that a tool locks this project for all Pythons that it allows."""


Item = Union[Spec, Include, Unclear, Skipped, Locks]
Reader = Callable[[Source], Iterator[Item]]
