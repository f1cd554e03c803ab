"""The items that readers yield, and the file systems in which they find the paths of a file."""

from __future__ import annotations

import os
import posixpath
from enum import Enum
from typing import Any, Callable, Iterator, NamedTuple, Optional, Set, Tuple, Union

from lightning_patches.cli import _files

Group = Tuple[str, ...]
"""Packages that are installed together: by one command of a Dockerfile, or with one extra of a project."""
PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
"""The files with the requirements of a directory that pip installs."""
MAX_PARTS = 10
"""Most directories above a file that are searched for."""


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

    def is_foreign(self, path: str) -> bool:
        """True if a missing file is in another repository, or a command writes it."""
        return False

    def locate(self, path: str) -> Optional[str]:
        """Return the path on this machine; ``None`` if it is outside of this place."""
        return path if _files.inside(self.root, path) else None

    def existing(self, directory: str, names: Tuple[str, ...]) -> Iterator[str]:
        """Yield the paths of those files that a directory of this place contains."""
        for name in names:
            path = str(self.paths.normpath(self.paths.join(directory, name)))
            located = self.locate(path)
            if located and os.path.isfile(located):
                yield path


class Checkout(Place):
    """The file system in which the commands of a workflow, script or notebook run.

    Args:
        project: the project. Files outside of it are not read, even if links in a root lead to them.
        roots: the directories of the project that the working directory may be.
    """

    paths: Any = posixpath

    def __init__(self, project: Place, *roots: str) -> None:
        super().__init__(roots[0])
        self.copies: Set[str] = set()
        """Directories with a copy of the project."""
        self.has_clones = False
        """True if other repositories are cloned. Then missing files are in them."""
        self.written: Set[str] = set()
        """Files that commands write."""
        self._project = project
        self._roots = roots

    @property
    def outside(self) -> str:
        return "is not in the project"

    def is_foreign(self, path: str) -> bool:
        return self.has_clones or path in self.written

    def locate(self, path: str) -> Optional[str]:
        copied = [path[len(copy) :] for copy in self.copies if path.startswith(f"{copy}/")]
        parts = path.split("/")
        # A script may run in a container that has the project in another directory.
        moved = ["/".join(parts[start:]) for start in range(2, min(len(parts), MAX_PARTS))]
        found = (self._locate(root, one) for one in (path, *copied, *moved) for root in self._roots)
        return next(filter(None, found), None)

    def _locate(self, root: str, path: str) -> Optional[str]:
        found = os.path.normpath(os.path.join(root, path.lstrip("/")))
        real = _files.inside(root, found)
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
        written: the path as it is written in the file; "" for ``path``.
    """

    path: str
    place: Place
    line: int = 0
    group: Group = ()
    is_requirements_file: bool = False
    written: str = ""


class Kind(Enum):
    """The effect of a gap."""

    UNREADABLE = "a file that cannot be read or parsed"
    SKIPPED = "not read, although it may require Lightning"
    NO_RELEASE = "requires Lightning without a release; does not matter if the project requires a release elsewhere"
    FOREIGN = "may contain Lightning; does not matter if the project requires Lightning elsewhere"
    NOTE = "has no effect on the exit status"
    NOT_A_REQUIREMENT = "matters only if the file is an argument of the command"


class Gap(NamedTuple):
    """A part of a file whose packages are unknown. ``f"{where} {what}."`` is a sentence.

    Args:
        where: the file, its line, or a file that it names.
        what: the rest of the sentence, which begins with a verb.
        kind: its effect.
    """

    where: str
    what: str
    kind: Kind = Kind.SKIPPED


class Locks(NamedTuple):
    """A sign that a tool locks this project for all Pythons that it allows."""


Item = Union[Spec, Include, Gap, Locks]
Reader = Callable[[Source], Iterator[Item]]
