"""Collect what a file of a project requires, together with the files that it includes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple, Union

from lightning_patches import patches as catalogue
from lightning_patches.cli import _files, _projects, _requirements, _resolve
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli._installs import is_path, read_dockerfile
from lightning_patches.cli._resolve import Group
from lightning_patches.cli._sources import Include, Item, Locks, Place, Skipped, Source, Spec
from lightning_patches.known import releases
from lightning_patches.known.unpatched import UNPATCHED, Unpatched
from lightning_patches.patch import Patch

if TYPE_CHECKING:
    from packaging.requirements import Requirement

MAX_INCLUDED = 100
"""Files that one file may include."""
MAX_NAMED = 1000
"""Files that one file and its includes may name, whether they are there or not."""
MAX_REQUIREMENTS = 100
"""Different requirements of Lightning in one file with its includes."""
MAX_OTHERS = 1000
"""Different requirements of other packages that matter, and remarks on one file."""
BUDGET = 256 << 20
"""Bytes that one audit reads. A byte that takes longer counts as several, see ``_projects.reader_of``."""

_ALIASES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch"}
"""conda's names for packages that pip calls otherwise."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*\s*(?:\[[\w\s,.-]*\])?\s*(?:$|[<>=!~]=|[<>@;(])")
"""The beginning of a requirement."""


class Found(NamedTuple):
    """A requirement of Lightning.

    Args:
        requirement: the requirement.
        file: that has it, "" for the command line.
        line: of that file, from 1.
        group: what else is installed with it.
        is_locked: it is from a lock file.
    """

    requirement: Requirement
    file: str = ""
    line: int = 0
    group: Group = ()
    is_locked: bool = False


@dataclass
class Budget:
    """The number of bytes that may still be read."""

    left: int = BUDGET


@dataclass
class Collected:
    """What a file and its includes require.

    Args:
        found: the requirements of Lightning.
        pins: the requirements of other packages that matter, and of Python.
        unclear: files that do not say which release is installed, each a sentence without its full stop.
        skipped: files and directories that were not read.
        trouble: files that cannot be read or parsed.
        has_patches: the file requires lightning-patches, or starts a program with them.
    """

    found: List[Found] = field(default_factory=list)
    pins: _resolve.Pins = field(default_factory=_resolve.Pins)
    unclear: List[str] = field(default_factory=list)
    skipped: List[str] = field(default_factory=list)
    trouble: List[str] = field(default_factory=list)
    has_patches: bool = False


def read(path: str, context: str = "") -> Collected:
    """Collect what a file that the user names requires.

    Args:
        path: the file.
        context: for a Dockerfile, the build context of ``docker build``; "" for the directory of the file.

    Raises:
        UsageError: the file cannot be read or parsed, or does not say if it requires Lightning.
    """
    collected = collect(path, Place(project_of(path)), context)
    if collected.trouble:
        raise UsageError(collected.trouble[0])
    unsaid = [*collected.skipped, *collected.unclear]
    if not collected.found and unsaid:
        raise UsageError(f"{unsaid[0]}, and so whether Lightning is asked for cannot be told.")
    return collected


def project_of(path: str) -> str:
    """The directory of the project that a file belongs to. Files outside of it are never read.

    For a workflow it is the checkout. For other files it is the nearest directory with a ``.git``, unless that is the
    user's home, or else the directory of the file.
    """
    checkout = _projects.checkout_of(path)
    if checkout is not None:
        return checkout
    directory = os.path.dirname(path) or "."
    above = os.path.realpath(directory)
    home = os.path.realpath(os.path.expanduser("~"))
    while above not in (home, os.path.dirname(above)):
        if os.path.exists(os.path.join(above, ".git")):
            return above
        above = os.path.dirname(above)
    return directory


def collect(path: str, place: Place, context: str = "", budget: Optional[Budget] = None) -> Collected:
    """Collect what a file requires. Never raises for what is in a file.

    Args:
        path: the file.
        place: the project. Files outside of it are not read, even if the file names them.
        context: for a Dockerfile, the build context of ``docker build``; "" for the directory of the file.
        budget: the bytes that may be read, shared by several files.
    """
    collector = _Collector(context, budget or Budget())
    collector.run(path, place)
    return collector.collected


class _Entry(NamedTuple):
    """A requirement whose marker was not looked at; ``found`` if it is of Lightning."""

    requirement: Requirement
    name: str
    group: Group
    path: str
    found: Optional[Found]


@dataclass
class _Open:
    """A file that is being read.

    Args:
        source: the file.
        items: the remaining items of its reader.
        group: the group of all its requirements.
        before: the number of requirements of Lightning found before this file.
        left: the number of items that it may still yield: its number of characters. Only YAML aliases yield more.
        lines: the lines of the file, filled on first use.
    """

    source: Source
    items: Iterator[Item]
    group: Group
    before: int
    left: int
    lines: Optional[_requirements.Lines] = None


class _Collector:
    """The work list: files that are being read, each included by the one before it."""

    def __init__(self, context: str, budget: Budget) -> None:
        self.collected = Collected()
        self._context = context
        self._budget = budget
        self._stack: List[_Open] = []
        self._read: Set[str] = set()
        self._entries: Dict[Tuple[str, str, Group], _Entry] = {}
        self._lightnings = 0
        self._named = 0

    def run(self, path: str, place: Place) -> None:
        try:
            self._include(Include(path, place, is_needed=True), "")
        except UsageError as error:
            self._add(self.collected.trouble, str(error))
        while self._stack:
            top = self._stack[-1]
            try:
                item = next(top.items, None)
                top.left -= 1
                if item is None:
                    self._stack.pop()
                elif top.left < 0:
                    self._stack.pop()
                    raise UsageError(f"{top.source.path} cannot be understood: its aliases stand for too much")
                else:
                    self._take(item, top)
            except UsageError as error:
                self._add(self.collected.trouble, str(error))
        self._finish()

    def _add(self, texts: List[str], text: str) -> None:
        text = text.rstrip(".")
        if len(texts) < MAX_OTHERS and text not in texts[-3:]:
            texts.append(text)

    def _take(self, item: Item, top: _Open) -> None:
        if isinstance(item, Spec):
            self._require(item, top)
        elif isinstance(item, Include):
            self._include(item._replace(group=top.group + item.group), top.source.path)
        elif isinstance(item, Skipped):
            self._add(self.collected.skipped, item.text)
        elif isinstance(item, Locks):
            self.collected.pins.locks = True
        elif not item.if_none or self._lightnings == top.before:
            self._add(self.collected.unclear, item.text)

    def _include(self, item: Include, named_in: str) -> None:
        self._named += 1
        if self._named > MAX_NAMED:
            first = self._stack[0].source.path
            self._add(self.collected.skipped, f"{first} names more than {MAX_NAMED} files: the others were not read")
            return
        path = item.place.locate(item.path)
        if path is None:
            text = f"{item.path[:200]} {item.place.outside}, and was not read"
            if not named_in:
                text = f"{item.path} is a link that leads out of the project, and was not read"
            where = f"{named_in}{f', line {item.line}' if item.line else ''}: " if named_in else ""
            self._add(self.collected.skipped if item.is_needed else self.collected.unclear, where + text)
            return
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError):
            real = path  # reading it raises the error to report
        if real in self._read:
            return
        if len(self._read) > MAX_INCLUDED:
            first = self._stack[0].source.path
            self._add(
                self.collected.skipped, f"{first} includes more than {MAX_INCLUDED} files: the others were not read"
            )
            return
        if self._budget.left < 0:
            self._add(self.collected.skipped, f"{path} was not read: the files before it are too large")
            return
        self._read.add(real)
        reader, most, cost = _projects.reader_of(path, item.reader)
        text = _files.read_text(path, most)
        self._budget.left -= len(text) * cost
        source = Source(path, text, item.place, item.path)
        items = read_dockerfile(source, self._context) if reader is read_dockerfile else reader(source)
        self._stack.append(_Open(source, _guarded(items, path), item.group, self._lightnings, len(text) + MAX_OTHERS))

    def _require(self, spec: Spec, top: _Open) -> None:
        path = top.source.path
        requirement = None
        begun = _NAME.match(spec.text)
        matters = begun is None or re.sub(r"[-_.]+", "-", begun[0]).lower() in _that_matter()
        if matters or "/" in spec.text or "\\" in spec.text or spec.text.endswith((".whl", ".gz", ".zip")):
            requirement = _requirements.parse(spec.text)
        elif _REQUIREMENT.match(spec.text):  # most are of packages that do not matter, and need no parser
            return
        if requirement is None:
            if _requirements.begins_with_lightning(spec.text):
                line = spec.line or spec.after
                raise UsageError(
                    f"{path}, line {line}: a requirement of Lightning cannot be understood. Give it with "
                    "--requirement, as lightning==2.2.5."
                )
            if spec.is_line and not is_path(spec.text):
                self._add(self.collected.unclear, f"{path}, line {spec.line} cannot be understood")
            return
        name = _requirements.canonical(requirement)
        name = _ALIASES.get(name, name)
        if name not in _that_matter():
            return
        group = top.group + spec.group
        is_pinned = requirement.url or _resolve.pinned_version(requirement)
        is_lightning = name in _requirements.NAMES
        key = (path if is_lightning else "", str(requirement), () if is_lightning and is_pinned else group)
        if key in self._entries:
            return
        found = None
        if is_lightning:
            self._lightnings += 1
            if self._lightnings > MAX_REQUIREMENTS:
                text = f"{path}: of more than {MAX_REQUIREMENTS} different requirements of Lightning, the others"
                self._add(self.collected.skipped, f"{text} were not looked at")
                return
            line = spec.line
            if not line:
                top.lines = top.lines or _requirements.Lines(top.source.text)
                line = top.lines.find(name, spec.after, spec.written)
            found = Found(requirement, path, line, group, spec.is_locked)
        elif len(self._entries) > MAX_OTHERS:
            self._add(self.collected.skipped, f"{path} has too many requirements of torch and the like")
            return
        self._entries[key] = _Entry(requirement, name, group, path, found)

    def _finish(self) -> None:
        """Evaluate the markers, for the Python that the files ask for."""
        python = _python([str(one.requirement.specifier) for one in self._entries.values() if one.name == "python"])
        for requirement, name, group, path, found in self._entries.values():
            if not _requirements.applies(requirement, python):
                continue
            if name == "lightning-patches":
                self.collected.has_patches = True
            if found is not None:
                self.collected.found.append(found)
            for pinned, spec in _pins(name, requirement):
                if not self.collected.pins.add(pinned, spec, group):
                    self._add(self.collected.skipped, f"{path} has too many or too long requirements of {pinned}")


def _guarded(items: Iterator[Item], path: str) -> Iterator[Item]:
    with _files.parsing(path):
        yield from items


def _python(specs: List[str]) -> str:
    """The Python for markers: the one that runs if the files allow it, or else the newest that they allow."""
    import platform

    running = ".".join(platform.python_version_tuple()[:2])
    allowed = [minor for spec in specs for minor in _resolve.python_minors(spec)]
    return "" if not allowed or f"=={running}.*" in allowed else allowed[-1][2:-2]


def _pins(name: str, requirement: Requirement) -> Iterator[Tuple[str, str]]:
    """Packages with their specifiers, for one requirement."""
    yield name, str(requirement.specifier)
    pinned = _resolve.pinned_version(requirement)
    numbers = re.match(r"(\d+)\.(\d+)", pinned or "")
    if numbers is None:
        return
    major, minor = int(numbers[1]), int(numbers[2])
    if name == "torchaudio":  # 2.0 is for torch 2.0, and 0.13 for 1.13
        yield "torch", f"=={major or 1}.{minor}.*"
    if name == "torchvision" and major == 0:  # 0.15 is for torch 2.0, and 0.14 for 1.13
        yield "torch", f"==2.{minor - 15}.*" if minor >= 15 else f"==1.{minor - 1}.*"


@lru_cache(maxsize=None)
def _that_matter() -> FrozenSet[str]:
    """All packages whose versions decide about Lightning's release, or about a bug."""
    records: List[Union[Patch, Unpatched]] = [*catalogue.all_patches(), *UNPATCHED]
    needed = {releases.split(text)[0] for record in records for text in record.only_with}
    others = {"lightning-patches", "python", "torchaudio", "torchvision"}
    return frozenset({*_requirements.NAMES, *_ALIASES, *releases.bounded_packages(), *needed, *others})
