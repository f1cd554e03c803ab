"""The items that readers yield, and the places where the paths in a file are looked up."""

from __future__ import annotations

import os
import posixpath
from typing import Any, Callable, Iterator, NamedTuple, Optional, Tuple, Union

from lightning_patches.cli import _files

Group = Tuple[str, ...]
"""Packages that are installed together: by one command of a Dockerfile, or with one extra of a project."""


class Place:
    """A directory on this machine. Only the files in it can be read.

    Args:
        root: the directory.
    """

    paths: Any = os.path
    """The module for the syntax of paths in this place."""

    def __init__(self, root: str) -> None:
        self.root = root

    @property
    def outside(self) -> str:
        """The end of a sentence about a path that is not in this place."""
        return f"is not in the project, {self.root}"

    def locate(self, path: str) -> Optional[str]:
        """Return the path on this machine; ``None`` if it is outside."""
        return path if _files.inside(self.root, path) else None


class Checkout(Place):
    """The file system that commands of a workflow or a notebook see. Its root is a directory of the project.

    Args:
        root: the directory.
        project: files outside of it are not read, even if they are in the directory.
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
        place: where the paths in it are looked up.
        path_there: its path in that place.
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
        after: without ``line``, the first line that may have it.
        written: without ``line``, other text of its line.
        group: the group that it is installed with.
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
        place: the place of the file or command that names it.
        line: the line that names it; 0 if unknown.
        group: the group of all its requirements.
        is_requirements_file: True if pip reads it as a requirements file, whatever its name is.
        is_needed: False if the tool would do without it.
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
        if_none: True if it matters only when the file and its includes require no Lightning.
    """

    text: str
    if_none: bool = False


class Skipped(NamedTuple):
    """A part that was not read, although it may require Lightning: a sentence without its full stop."""

    text: str


class Locks(NamedTuple):
    """A tool locks this project for all Pythons that it allows."""


Item = Union[Spec, Include, Unclear, Skipped, Locks]
Reader = Callable[[Source], Iterator[Item]]
