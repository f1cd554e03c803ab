"""Read the packages that the RUN lines of a Dockerfile install.

The paths in a RUN line are paths of the image. COPY, ADD and bind mounts map them to files of the build context. The
copies of all stages count for each stage; files that one stage copies from another one are not known.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
import shlex
from typing import Iterator, NamedTuple, Optional

from lightning_patches.cli import _files
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.audit.sources.commands import Shell
from lightning_patches.cli.audit.sources.items import Checkout, Gap, Item, Kind, Place, Source, Spec
from lightning_patches.cli.audit.sources.lines import logical_lines, uses_patches

MAX_COPIES = 100
"""Most copies of a Dockerfile, and most sources of a copy."""
MAX_LOOKUPS = 10_000
"""Most copies that are searched for files."""


def read_dockerfile(source: Source) -> Iterator[Item]:
    """Read a Dockerfile.

    Raises:
        UsageError: the Dockerfile is too large.
    """
    dockerfile = _Dockerfile(source)
    for number, instruction, rest in _instructions(_files.lines(source.text)):
        yield from uses_patches(f"{instruction} {rest}")
        yield from dockerfile.read(number, instruction, rest)
    if not dockerfile.is_plain:
        what = "does not install Lightning by name; its base image may contain Lightning"
        yield Gap(source.path, what, Kind.FOREIGN)


class _Copy(NamedTuple):
    """``COPY``, ``ADD`` or a mount: files or directories that a path of the image contains.

    Args:
        sources: paths in the build context.
        target: the path in the image.
    """

    sources: list[str]
    target: str

    def sources_of(self, path: str) -> Iterator[str]:
        """Yield the source paths that may have been copied to a path of the image."""
        base = posixpath.basename(path)
        below = path[len(self.target) :].lstrip("/") if path.startswith(self.target.rstrip("/") + "/") else ""
        for source in self.sources:
            pattern = posixpath.basename(source)
            if any(character in pattern for character in "*?["):
                # Python below 3.9 takes a very long time for patterns with many stars.
                is_short = len(pattern) < 100 and pattern.count("*") < 4
                if below == base and is_short and fnmatch.fnmatchcase(base, pattern):
                    yield posixpath.join(posixpath.dirname(source), base)
            elif path == self.target:
                yield source
            elif below:
                yield posixpath.join(source, below)
                if below == base == pattern:
                    yield source


class _Image(Checkout):
    """The file system of an image: the files of the build context that were copied."""

    def __init__(self, root: str, project: Place, file: str) -> None:
        super().__init__(project, root)
        self.copied: list[_Copy] = []
        self._file = file
        self._lookups_left = MAX_LOOKUPS

    @property
    def outside(self) -> str:
        return "is not in the project, or not copied from it"

    def locate(self, path: str) -> Optional[str]:
        copies = self.copied[::-1] if self._lookups_left >= 0 else []
        sources = [source for copy in copies for source in copy.sources_of(path)]
        self._lookups_left -= 1 + len(self.copied) + 10 * len(sources)
        if self._lookups_left < 0:
            raise UsageError(f"{self._file} cannot be read: it has too many copies")
        return next(filter(None, map(super().locate, sources)), None)


class _Dockerfile:
    is_plain = True
    """False if a base image may contain Lightning."""

    def __init__(self, source: Source) -> None:
        self._path = source.path
        project = Place(source.context) if source.context else source.place
        self._image = _Image(source.context or source.directory, project, source.path)
        self._shell = Shell(source, self._image)
        self._stage = ""
        self._directories: dict[str, str] = {}
        """Name of a stage -> its working directory."""

    def read(self, number: int, instruction: str, rest: str) -> Iterator[Item]:
        """Read an instruction.

        Args:
            number: its line number.
            instruction: its name in capitals.
            rest: the text after the name.

        Raises:
            UsageError: the Dockerfile is too large.
        """
        copies = self._image.copied
        if instruction in ("ARG", "ENV"):
            self._set_variables(rest)
        elif instruction == "FROM":
            yield from self._begin_stage(self._shell.expand(rest).split())
        elif instruction == "WORKDIR":
            self._shell.directory = self._directories[self._stage] = self._shell.path(self._shell.expand(rest.strip()))
        elif instruction in ("COPY", "ADD"):
            copies += self._copies(rest.partition("\n")[0])
            if len(copies) > MAX_COPIES:
                raise UsageError(f"{self._path} cannot be read: it has more than {MAX_COPIES} copies.")
        elif instruction in ("RUN", "CMD", "ENTRYPOINT"):
            before, directory = len(copies), self._shell.directory
            copies += self._mounts(rest)
            for _, line in logical_lines(" ".join(_listed(rest) or [rest]).split("\n")):
                yield from self._shell.read(line, number)
            del copies[before:]
            self._shell.directory = directory

    def _set_variables(self, rest: str) -> None:
        words = _words(rest)
        if words and "=" not in words[0] and len(words) > 1:  # ENV NAME value
            words = [f"{words[0]}={' '.join(words[1:])}"]
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                self._shell.variables[name] = self._shell.expand(value)

    def _begin_stage(self, words: list[str]) -> Iterator[Spec]:
        words = [word for word in words if not word.startswith("--")] or [""]
        self._shell.directory = self._directories.get(words[0].lower(), "/")
        self._stage = words[2].lower() if len(words) > 2 and words[1].lower() == "as" else ""
        if words[0].lower() not in self._directories and not _PLAIN_IMAGE.fullmatch(
            words[0].rpartition("/")[2].lower()
        ):
            self.is_plain = False
        self._directories[self._stage] = self._shell.directory
        for pattern, spec in _BASE_IMAGES:
            found = pattern.match(words[0].rpartition("/")[2])
            if found:
                yield Spec(spec.format(found[1]), group=("base image",))

    def _copies(self, rest: str) -> Iterator[_Copy]:
        words = rest.split() if "[" in rest else _words(rest)
        while words and words[0].startswith("--"):
            if words.pop(0).startswith("--from="):  # another stage or another image
                return
        words = _listed(" ".join(words)) or words
        words = [self._shell.expand(word) for word in words]
        if len(words) > 1:
            sources = [_in_context(word) for word in words[:-1][:MAX_COPIES] if "://" not in word]
            yield _Copy(sources, self._shell.path(words[-1]))

    def _mounts(self, rest: str) -> Iterator[_Copy]:
        for word in rest.split():
            if not word.startswith("--"):
                return
            options = dict(part.partition("=")[::2] for part in word.partition("--mount=")[2].split(","))
            source = options.get("source", options.get("src", "/"))
            target = options.get("target", options.get("dst", options.get("destination", "")))
            if options.get("type", "bind") == "bind" and target and "from" not in options:
                yield _Copy([_in_context(self._shell.expand(source))], self._shell.path(self._shell.expand(target)))


_BASE_IMAGES = (
    (re.compile(r"python:(\d+\.\d+)"), "python=={}.*"),
    (re.compile(r"pytorch:(\d+\.\d+\.\d+)"), "torch=={}"),
)
"""Patterns for the last part of an image's name -> the package version of such an image."""
_PLAIN_IMAGE = re.compile(
    r"(?:(?:python|pytorch|cuda|ubuntu|debian|alpine|fedora|centos|rockylinux|amazonlinux|tensorflow|node|golang|"
    r"rust|gcc|nginx|jax|uv|julia|openjdk|r-base|tritonserver)|[\w-]*(?:conda|mamba|miniforge|-notebook)[\w-]*|scratch)"
    r"(?:[:@].*)?"
)
"""Names of images without Lightning."""
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_HEREDOC = re.compile(r"<<-?[\"']?([A-Za-z_]\w{0,99})")


def _instructions(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the name and the rest of each instruction.

    Continued lines are joined with spaces. The text of a heredoc follows its command, with line breaks.
    """
    last = {line.strip(): index for index, line in enumerate(lines)}
    at = 0
    while at < len(lines):
        first = at
        parts: list[str] = []
        while at < len(lines):
            line = lines[at].rstrip()
            at += 1
            is_comment = line.lstrip().startswith("#")
            if is_comment or (parts and not line):
                if not parts:
                    break
                continue  # comments and empty lines within an instruction
            parts.append(line[:-1] if line.endswith("\\") else line)
            if not line.endswith("\\"):
                break
        found = _INSTRUCTION.match(" ".join(parts))
        if found is None:
            continue
        name, rest = found[1].upper(), found[2]
        heredoc = _HEREDOC.search(rest) if name in ("RUN", "COPY", "ADD") else None
        if heredoc is not None and last.get(heredoc[1], -1) >= at:
            body = at
            while lines[at].strip() != heredoc[1]:
                at += 1
            rest = "\n".join([rest[: heredoc.start()], *lines[body:at]])
            at += 1
        yield first + 1, name, rest


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _listed(text: str) -> list[str]:
    """Parse the JSON form of an instruction: ``["pip", "install", "lightning"]``. Return an empty list for others."""
    if not text.lstrip().startswith("["):
        return []
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [word for word in listed if isinstance(word, str)] if isinstance(listed, list) else []


def _in_context(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))
