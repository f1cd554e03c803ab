"""Collect the requirements of a file and of the files that it includes.

The collector keeps a stack of open files. Readers yield items, and the collector opens the files that they include.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple, Union

from lightning_patches import patches as catalogue
from lightning_patches.cli import _files
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.audit import requirements
from lightning_patches.cli.audit.pins import Pins, pinned_version, python_minors
from lightning_patches.cli.audit.sources.items import Gap, Group, Include, Item, Kind, Locks, Place, Source, Spec
from lightning_patches.cli.audit.sources.lines import is_path
from lightning_patches.cli.audit.sources.readers import READ, format_of
from lightning_patches.known import releases
from lightning_patches.known.unpatched import UNPATCHED, Unpatched
from lightning_patches.patch import Patch

if TYPE_CHECKING:
    from packaging.requirements import Requirement

MAX_INCLUDED = 100
"""Most files that one file may include."""
MAX_NAMED = 1000
"""Most files that one file and its includes may name, including files that do not exist."""
MAX_REQUIREMENTS = 100
"""Most different requirements of Lightning in one file with its includes."""
MAX_OTHERS = 1000
"""Most different requirements of other relevant packages, and most gaps."""
BUDGET = 256 << 20
"""Most bytes that one audit reads. A byte of a format that is slow to parse counts as several, see ``Format.cost``."""

_ALIASES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch"}
"""Names of packages in conda, and their names in pip."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*\s*(?:\[[\w\s,.-]*\])?\s*(?:$|[<>=!~]=|[<>@;(])")
"""The beginning of a requirement."""
_CONDA = re.compile(r"[A-Za-z0-9][\w.-]*=\w")
"""The beginning of a package in a list that conda writes."""


class LightningRequirement(NamedTuple):
    """A requirement of Lightning.

    Args:
        requirement: the requirement.
        file: its file; "" for the command line.
        line: its line in that file, from 1.
        group: the group with which it is installed.
        is_locked: True if it is from a lock file.
    """

    requirement: Requirement
    file: str = ""
    line: int = 0
    group: Group = ()
    is_locked: bool = False

    @property
    def distribution(self) -> str:
        return requirements.canonical_name(self.requirement)


@dataclass
class Budget:
    """The number of bytes that may still be read."""

    left: int = BUDGET


class Gaps:
    """The parts of a project that an audit could not consider."""

    def __init__(self) -> None:
        self._found: Dict[Gap, None] = {}

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Gap]:
        return iter(self._found)

    def add(self, gap: Gap) -> None:
        if len(self._found) < MAX_OTHERS:
            self._found[gap] = None

    def sentences(self, *kinds: Kind) -> List[str]:
        """Return a sentence without its full stop for each kind of gap, with the first places and their number."""
        places: Dict[str, List[str]] = {}
        for where, what, kind in self:
            if kind in kinds:
                places.setdefault(what, []).append(where)
        return [_sentence(wheres, what) for what, wheres in places.items()]

    @property
    def trouble(self) -> List[str]:
        """Files that cannot be read or parsed."""
        return self.sentences(Kind.UNREADABLE)

    @property
    def unclear(self) -> List[str]:
        """Files that may contain Lightning, and parts that have no effect on the exit status."""
        return self.sentences(Kind.FOREIGN, Kind.NOTE, Kind.NOT_A_REQUIREMENT)

    @property
    def skipped(self) -> List[str]:
        """Files and directories that were not read, and files that need a Lightning without naming its release."""
        return self.sentences(Kind.SKIPPED, Kind.NO_RELEASE)


def _sentence(wheres: List[str], what: str) -> str:
    if len(wheres) == 1:
        return f"{wheres[0]} {what}".lstrip()
    named = "; ".join(where.rstrip(",") for where in wheres[:3])
    more = f"; and {len(wheres) - 3} more" if len(wheres) > 3 else ""
    return f"{named}{more}: each {what}"


@dataclass
class Collected:
    """The requirements of a file and its includes.

    Args:
        found: the requirements of Lightning.
        pins: the requirements of other relevant packages, and of Python.
        gaps: the parts that could not be parsed or read.
        has_patches: True if the file requires lightning-patches, or starts a program with it.
    """

    found: List[LightningRequirement] = field(default_factory=list)
    pins: Pins = field(default_factory=Pins)
    gaps: Gaps = field(default_factory=Gaps)
    has_patches: bool = False


def collect(path: str, place: Place, context: str = "", budget: Optional[Budget] = None) -> Collected:
    """Collect the requirements of a file. Invalid content does not raise; it is listed in ``gaps`` of the result.

    Args:
        path: the file.
        place: the project. Files outside of it are not read, even if the file names them.
        context: for a Dockerfile, the build context of ``docker build``; "" for the directory of the file.
        budget: the number of bytes that may still be read, for several calls.
    """
    collector = _Collector(context, budget or Budget())
    collector.run(path, place)
    return collector.collected


class _Entry(NamedTuple):
    """A requirement whose marker is not evaluated yet.

    Args:
        requirement: the requirement.
        name: the name of the package in pip.
        group: the group with which it is installed.
        path: the file with the requirement.
        found: for a requirement of Lightning, the same requirement with its place; else ``None``.
    """

    requirement: Requirement
    name: str
    group: Group
    path: str
    found: Optional[LightningRequirement]


@dataclass
class _OpenFile:
    """A file that is being read.

    Args:
        source: the file.
        items: the items that its reader has not yielded yet.
        group: the group of all its requirements.
        lightnings_before: the number of requirements of Lightning in earlier files.
        items_left: the number of items that the reader may still yield. The limit stops malicious YAML aliases.
        lines: finds the lines of requirements; ``None`` before the first use.
    """

    source: Source
    items: Iterator[Item]
    group: Group
    lightnings_before: int
    items_left: int
    lines: Optional[requirements.Lines] = None


class _Collector:
    """A stack of files that are being read. Each file is included by the file below it."""

    def __init__(self, context: str, budget: Budget) -> None:
        self.collected = Collected()
        self._context = context
        self._budget = budget
        self._open: List[_OpenFile] = []
        self._read: Set[str] = set()
        self._entries: Dict[Tuple[str, str, Group], _Entry] = {}
        self._lightnings = 0
        self._named = 0

    def run(self, path: str, place: Place) -> None:
        gaps = self.collected.gaps
        try:
            self._include(Include(path, place), "")
        except UsageError as error:
            gaps.add(_unreadable(path, error))
        while self._open:
            file = self._open[-1]
            try:
                item = next(file.items, None)
                file.items_left -= 1
                if item is None:
                    self._open.pop()
                elif file.items_left < 0:
                    self._open.pop()
                    raise UsageError(f"{file.source.path} cannot be understood: its aliases expand to too much text")
                else:
                    self._handle(item, file)
            except UsageError as error:
                gaps.add(_unreadable(file.source.path, error))
        self._evaluate_markers()

    def _skip(self, where: str, what: str) -> None:
        self.collected.gaps.add(Gap(where, what))

    def _handle(self, item: Item, file: _OpenFile) -> None:
        if isinstance(item, Spec):
            self._require(item, file)
        elif isinstance(item, Include):
            self._include(item._replace(group=file.group + item.group), file.source.path)
        elif isinstance(item, Locks):
            self.collected.pins.locks = True
        elif item.kind in (Kind.SKIPPED, Kind.NOTE) or self._lightnings == file.lightnings_before:
            self.collected.gaps.add(item)

    def _include(self, item: Include, named_in: str) -> None:
        self._named += 1
        if self._named > MAX_NAMED:
            self._skip(self._first, f"names more than {MAX_NAMED} files: the others were not read")
            return
        path = item.place.locate(item.path)
        where = item.path
        if named_in:
            line = f", line {item.line}" if item.line else ""
            where = f"{named_in}{line}: {(item.written or item.path)[:200]}"
            if "$" in item.path:
                self._skip(where, "depends on a variable, and was not read")
                return
            if path is None and item.place.is_foreign(item.path):
                self.collected.gaps.add(Gap(where, "is in a cloned repository, or a command writes it", Kind.FOREIGN))
                return
            if path is None or not os.path.lexists(path):
                what = "cannot be read: there is no such file" if path else f"{item.place.outside}, and was not read"
                self._skip(where, what)
                return
        if path is None:
            self._skip(where, "is a link that leads out of the project, and was not read")
            return
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError):
            real = path  # reading it raises the error to report
        if real not in self._read:
            self._open_file(path, real, item)

    def _open_file(self, path: str, real: str, item: Include) -> None:
        if len(self._read) > MAX_INCLUDED:
            self._skip(self._first, f"includes more than {MAX_INCLUDED} files: the others were not read")
            return
        if self._budget.left < 0:
            self._skip(path, "was not read: the total size of the files before it is too large")
            return
        self._read.add(real)
        kind = format_of(path, item.is_requirements_file)
        if kind.reader is None:
            _files.read(path)
            raise UsageError(f"{path} is not supported. `audit` reads {READ}.")
        text = _files.read_text(path, kind.limit)
        self._budget.left -= len(text) * kind.cost
        source = Source(path, text, item.place, item.path, self._context)
        items = _guarded(kind.reader(source), path)
        self._open.append(_OpenFile(source, items, item.group, self._lightnings, len(text) + MAX_OTHERS))

    @property
    def _first(self) -> str:
        return self._open[0].source.path

    def _require(self, spec: Spec, file: _OpenFile) -> None:
        path = file.source.path
        requirement = _parsed(spec)
        if requirement is None:
            where = f"{path}, line {spec.line or spec.after}"
            if requirements.starts_with_lightning(spec.text):
                self._skip(f"{where}: a requirement of Lightning", f"cannot be understood. {_PASS_IT}")
            elif spec.is_line and not _REQUIREMENT.match(spec.text) and not is_path(spec.text):
                self.collected.gaps.add(Gap(where, "cannot be understood", Kind.NOT_A_REQUIREMENT))
            return
        name = requirements.canonical_name(requirement)
        name = _ALIASES.get(name, name)
        if name not in _relevant_packages():
            return
        group = file.group + spec.group
        is_lightning = name in releases.DISTRIBUTIONS
        is_pinned = requirement.url or pinned_version(requirement)
        key = (path if is_lightning else "", str(requirement), () if is_lightning and is_pinned else group)
        if key in self._entries:
            return
        found = None
        if is_lightning:
            self._lightnings += 1
            if self._lightnings > MAX_REQUIREMENTS:
                what = f"has more than {MAX_REQUIREMENTS} different requirements of Lightning; the rest was skipped"
                self._skip(path, what)
                return
            found = LightningRequirement(requirement, path, _line_of(spec, name, file), group, spec.is_locked)
        elif len(self._entries) > MAX_OTHERS:
            self._skip(path, "has too many requirements of torch and other packages that Lightning needs")
            return
        self._entries[key] = _Entry(requirement, name, group, path, found)

    def _evaluate_markers(self) -> None:
        """Keep the requirements whose markers are true for the Python that the files require."""
        python = _python([str(one.requirement.specifier) for one in self._entries.values() if one.name == "python"])
        for requirement, name, group, path, found in self._entries.values():
            if not requirements.applies(requirement, python):
                continue
            if name == "lightning-patches":
                self.collected.has_patches = True
            if found is not None:
                self.collected.found.append(found)
            for pinned, spec in _pins(name, requirement):
                if not self.collected.pins.add(pinned, spec, group):
                    self._skip(path, f"has too many requirements of {pinned}, or a requirement that is too long")


_PASS_IT = "Pass it as --requirement lightning==2.2.5"


def _parsed(spec: Spec) -> Optional[Requirement]:
    """Parse a requirement. Return ``None`` if it is malformed, or for a package that does not matter."""
    named = _NAME.match(spec.text)
    is_relevant = named is None or re.sub(r"[-_.]+", "-", named[0]).lower() in _relevant_packages()
    is_file = "/" in spec.text or "\\" in spec.text or spec.text.endswith((".whl", ".gz", ".zip"))
    if not is_relevant and not is_file:  # parsing is slow
        return None
    found = requirements.parse_requirement(spec.text)
    if found is None and spec.is_line and _CONDA.match(spec.text):  # `conda list --export` writes name=version=build
        found = requirements.parse_requirement(requirements.conda_spec(spec.text))
    return found


def _unreadable(path: str, error: UsageError) -> Gap:
    text = str(error).rstrip(".")
    return (
        Gap(path, text[len(path) :].lstrip(), Kind.UNREADABLE)
        if text.startswith(path)
        else Gap("", text, Kind.UNREADABLE)
    )


def _line_of(spec: Spec, name: str, file: _OpenFile) -> int:
    if spec.line:
        return spec.line
    file.lines = file.lines or requirements.Lines(file.source.text)
    return file.lines.find(name, spec.after, spec.written)


def _guarded(items: Iterator[Item], path: str) -> Iterator[Item]:
    with _files.parsing(path):
        yield from items


def _python(specs: List[str]) -> str:
    """Return the Python version for markers: "" for the running one, or the newest that the files allow."""
    running = ".".join(platform.python_version_tuple()[:2])
    allowed = [minor for spec in specs for minor in python_minors(spec)]
    return "" if not allowed or f"=={running}.*" in allowed else allowed[-1][2:-2]


def _pins(name: str, requirement: Requirement) -> Iterator[Tuple[str, str]]:
    """Yield the package and specifier of a requirement, and those of torch that follow from it."""
    yield name, str(requirement.specifier)
    numbers = re.match(r"(\d+)\.(\d+)", pinned_version(requirement) or "")
    if numbers is None:
        return
    major, minor = int(numbers[1]), int(numbers[2])
    if name == "torchaudio":  # torchaudio 2.0 needs torch 2.0, and 0.13 needs torch 1.13
        yield "torch", f"=={major or 1}.{minor}.*"
    if name == "torchvision" and major == 0:  # torchvision 0.15 needs torch 2.0, and 0.14 needs torch 1.13
        yield "torch", f"==2.{minor - 15}.*" if minor >= 15 else f"==1.{minor - 1}.*"


@lru_cache(maxsize=None)
def _relevant_packages() -> FrozenSet[str]:
    """Return the packages whose versions affect which release is installed, or which bugs occur."""
    records: List[Union[Patch, Unpatched]] = [*catalogue.all_patches(), *UNPATCHED]
    needed = {releases.split(text)[0] for record in records for text in record.only_with}
    others = {"lightning-patches", "python", "torchaudio", "torchvision"}
    return frozenset({*releases.DISTRIBUTIONS, *_ALIASES, *releases.bounded_packages(), *needed, *others})
