"""Read requirements files and commands: `pip install`, `conda install` and others, in Dockerfiles and workflows.

A path in a command is one of the machine on which it runs. A :class:`~lightning_patches.cli._sources.Place` finds the
file of the project that will be there.
"""

from __future__ import annotations

import fnmatch
import json
import os
import posixpath
import re
import shlex
from dataclasses import dataclass, field
from typing import Iterator, Optional

from lightning_patches.cli import _files
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli._requirements import conda_spec
from lightning_patches.cli._resolve import Group
from lightning_patches.cli._sources import MAX_COMMANDS, Checkout, Include, Item, Place, Skipped, Source, Spec, Unclear

_MOST = 100
"""Stages and copies of a Dockerfile."""
_MOST_EXPANDED = 1 << 20
"""The most characters that the variables of one Dockerfile may expand to."""
_HAS_PATCHES = re.compile(r"lightning[-_]patches|LIGHTNING_PATCHES[\s=:]{1,2}[\"']?(?!0|off|false|none)")


def uses_patches(text: str) -> Iterator[Spec]:
    """Yield our package if a text asks for it, or starts a program with it."""
    if _HAS_PATCHES.search(text):
        yield Spec("lightning-patches")


def logical_lines(lines: list[str], begin: int = 0) -> Iterator[tuple[int, str]]:
    """Join lines that end in a backslash with the next one; yield each with the number of its first line."""
    begun: list[str] = []
    first = begin + 1
    for number, line in enumerate(lines, begin + 1):
        first = first if begun else number
        if line.endswith("\\"):
            begun.append(line[:-1])
            continue
        yield first, " ".join([*begun, line])
        begun = []
    if begun:
        yield first, " ".join(begun)


# -------------------------------------------------------------------- requirements files

WITH_FILE = ("-r", "-c", "--requirement", "--constraint")
"""Options of pip that include a file."""


def read_pip(source: Source) -> Iterator[Item]:
    """Read a requirements file of pip. Paths and pip's other options are passed over."""
    for number, line in logical_lines(_files.lines(source.text)):
        yield from pip_line(line, number, source)


def pip_line(line: str, number: int, source: Source, group: Group = ()) -> Iterator[Item]:
    """A line of a requirements file.

    Args:
        line: the line.
        number: the line number, from 1.
        source: the file.
        group: the group of the line's requirements.
    """
    line = _without_comment(line)
    option, value = option_of(line) if line.startswith("-") else ("", "")
    if option in WITH_FILE:
        if "://" in value:
            yield Skipped(f"{source.path}, line {number}: the file is at an address, and was not fetched")
        else:
            yield Include(source.beside(value), source.place, number, read_pip, group)
        return
    line = _without_options(value if option in ("-e", "--editable") else line)
    if line:
        yield Spec(line, number, group=group, is_line=True)


def is_path(line: str) -> bool:
    """True if a line of a requirements file that is no requirement is a path, an address or an option."""
    first = line.split()[0]
    return line.startswith(("-", ".")) or "://" in first or re.search(r"[/\\]", first) is not None


def _without_comment(line: str) -> str:
    if line.startswith("#"):
        return ""
    return (re.split(r"\s#", line, maxsplit=1)[0] if "#" in line else line).strip()


def _without_options(line: str) -> str:
    return re.split(r"\s--", line, maxsplit=1)[0].strip() if "--" in line else line


def option_of(line: str) -> tuple[str, str]:
    """``-r x``, ``-rx``, ``--requirement=x`` as option and value."""
    for option in ("-r", "-c", "-e", "--requirement", "--constraint", "--editable"):
        rest = line[len(option) :]
        if line.startswith(option) and (rest[:1] in (" ", "\t", "=") or (rest and option[1] != "-")):
            return option, rest.lstrip(" \t=").strip("'\"")
    return "", ""


# -------------------------------------------------------------------- commands


def read_commands(line: str, here: Checkout, path: str, number: int) -> Iterator[Item]:
    """A line for a shell.

    Args:
        line: the line.
        here: where it runs.
        path: the file that has the line.
        number: of the line, or of one before it.
    """
    if "$" not in line and not _MAY_INSTALL.search(line):
        return
    if here.left < 0:
        return
    here.left -= len(line)
    if here.left < 0:
        yield Skipped(f"{path}, line {number}: more than {MAX_COMMANDS >> 20} MB of commands, the rest was not read")
        return
    begun = here.directory
    try:
        for words in _commands(line):
            here.commands += 1
            words = [part for word in words for part in here.expanded(word)]
            if words[:1] == ["cd"] and len(words) > 1:
                here.directory = here.path(words[1])
            elif words:
                yield from _read_command(words, here, number, (f"command {here.commands}",))
    except ValueError:
        if re.search(r"\b(?:pip|conda|mamba)\b", line) and re.search(r"lightning", line, re.IGNORECASE):
            raise UsageError(f"{path}: a command on line {number} or below cannot be understood.") from None
    finally:
        here.directory = begun


_MAY_INSTALL = re.compile(r"install|sync|create|env|update|patches")


def _commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&()")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in lexer:
        if word.strip(";|&()") and not word.startswith("#"):
            words.append(word)
            continue
        yield words
        words = []
        if word.startswith("#"):
            return
    yield words


_WITH_VALUE = ("-n", "--name", "-p", "--prefix", "-i", "--index-url", "--extra-index-url", "-t", "--target", "--python")
_LOCKED = {"poetry": "poetry.lock", "uv": "uv.lock", "pdm": "pdm.lock", "pixi": "pixi.lock", "pipenv": "Pipfile.lock"}
"""Tools that install what their lock file says."""


def _read_command(words: list[str], here: Checkout, number: int, group: Group) -> Iterator[Item]:
    names = [posixpath.basename(word) for word in words]
    yield from uses_patches(" ".join(names))
    for tool, name in enumerate(names):
        verb = next((i for i in range(tool + 1, min(tool + 9, len(names))) if not names[i].startswith("-")), tool)
        if name in _LOCKED and names[verb] in ("install", "sync"):
            yield Include(here.path(_LOCKED[name]), here, number, group=group, is_needed=False)
        elif re.fullmatch(r"pip[\d.]*", name) and names[verb] == "install":
            yield from _pip_command(words[verb + 1 :], here, number, group)
        elif name in ("conda", "mamba", "micromamba") and names[verb] in ("install", "create", "env", "update"):
            yield from _conda_command(words[verb + 1 :], here, number, group)
        else:
            continue
        return


def _pip_command(words: list[str], here: Checkout, number: int, group: Group) -> Iterator[Item]:
    for before, word in zip(["", *words], words):
        option, value = option_of(word) if word.startswith("-") else ("", "")
        if before in WITH_FILE or (option in WITH_FILE and value):
            yield Include(here.path(value or word), here, number, read_pip, group)
        elif word.startswith((".", "/")) and not word.endswith((".whl", ".gz", ".zip")):
            project = here.path(posixpath.join(word.partition("[")[0], "pyproject.toml"))
            yield Include(project, here, number, group=group, is_needed=False)
        elif not word.startswith("-") and before not in _WITH_VALUE:
            yield Spec(word, after=number, written=word, group=group)


def _conda_command(words: list[str], here: Checkout, number: int, group: Group) -> Iterator[Item]:
    for before, word in zip(["", *words], words):
        if before in (*_WITH_VALUE, "-c", "--channel"):
            continue
        path = word if before in ("-f", "--file") else word[7:] if word.startswith("--file=") else ""
        if path:
            yield Include(here.path(path), here, number, group=group)
        elif not word.startswith("-"):
            yield Spec(conda_spec(word), after=number, written=word, group=group)


# -------------------------------------------------------------------- Dockerfiles


@dataclass
class Copy:
    """``COPY`` or ``ADD``: some of these are at a path of the image, or below it."""

    sources: list[str]
    to: str
    stage: Optional[Stage] = None


@dataclass
class Stage:
    """The known facts about one stage of a Dockerfile."""

    before: Optional[Stage] = None
    workdir: str = "/"
    copies: list[Copy] = field(default_factory=list)


class Image(Checkout):
    """Where the RUN lines of a Dockerfile run. The root is the build context.

    Args:
        root: the build context.
        within: the project; the build context must be inside it.
        file: the Dockerfile.
    """

    def __init__(self, root: str, within: Place, file: str) -> None:
        super().__init__(root, within)
        self.file = file
        self.stage = Stage()
        self.variables: dict[str, str] = {}
        self.mounts: list[Copy] = []
        self.expansions_left = _MOST_EXPANDED
        """The number of characters that variables may still expand to."""
        self.looks = 10_000
        """Copies that may still be looked through."""

    def expanded(self, word: str) -> list[str]:
        return self.expand(word).split() if "$" in word else [word]

    def expand(self, text: str) -> str:
        """Expand ``$NAME``, ``${NAME}`` and ``${NAME:-default}``; unset variables stay unexpanded.

        Raises:
            UsageError: the expansions of this Dockerfile are too long.
        """
        if "$" not in text:
            return text

        def value(found: re.Match[str]) -> str:
            said = self.variables.get(found[1] or found[3], found[2] or found[0])
            self.expansions_left -= len(said)
            if self.expansions_left < 0:
                raise UsageError(f"{self.file} cannot be read: its variables stand for more than 1 MB of text")
            return said

        return re.sub(r"\$(?:\{(\w{1,99})(?::?-([^{}]{0,999}))?\}|(\w{1,99}))", value, text)[: _files.MAX_LINE]

    def locate(self, path: str) -> Optional[str]:
        """The file of the build context that COPY, ADD or a mount puts at a path of the image."""
        left: list[tuple[Optional[Stage], str]] = [(self.stage, path)]
        while left:
            stage, path = left.pop()
            self.looks -= 10 if stage is None else 1
            if self.looks < 0:
                raise UsageError(f"{self.file} cannot be read: it copies too much")
            if stage is None:
                found = super().locate(path)
                if found is not None:
                    return found
                continue
            copies = list(self.mounts) if stage is self.stage else []
            of: Optional[Stage] = stage
            while of is not None:
                copies += reversed(of.copies)
                of = of.before
                self.looks -= 1
            self.looks -= len(copies)
            left += reversed([(copy.stage, source) for copy in copies for source in _sources(copy, path)])
        return None


def _sources(copy: Copy, path: str) -> Iterator[str]:
    """The possible source paths of a path in the image, before it was copied."""
    base = posixpath.basename(path)
    below = path[len(copy.to) :].lstrip("/") if path.startswith(copy.to.rstrip("/") + "/") else ""
    for source in copy.sources:
        pattern = posixpath.basename(source)
        if any(one in pattern for one in "*?["):
            # Python below 3.9 takes very long for patterns with many stars.
            if below == base and len(pattern) < 100 and pattern.count("*") < 4 and fnmatch.fnmatchcase(base, pattern):
                yield posixpath.join(posixpath.dirname(source), base)
        elif path == copy.to:
            yield source
        elif below:
            yield posixpath.join(source, below)
            if below == base == pattern:
                yield source


def read_dockerfile(source: Source, context: str = "") -> Iterator[Item]:
    """Read what the RUN lines of a Dockerfile install.

    Args:
        source: the Dockerfile.
        context: the directory that ``docker build`` is given; "" for that of the file.

    Raises:
        UsageError: it is too large.
    """
    within = Place(context) if context else source.place
    image = Image(context or os.path.dirname(source.path) or ".", within, source.path)
    stages: dict[str, Stage] = {}
    copies = begun = 0
    for first, instruction, rest in _instructions(_files.lines(source.text)):
        yield from uses_patches(f"{instruction} {rest}")
        if instruction in ("ARG", "ENV"):
            _set(image, rest)
        elif instruction == "FROM":
            begun += 1
            yield from _begin(image, image.expand(rest), stages)
        elif instruction == "WORKDIR":
            image.directory = image.stage.workdir = image.path(image.expand(rest.strip()))
        elif instruction in ("COPY", "ADD"):
            copies += 1
            found = _copy(image, rest, stages)
            image.stage.copies += [found] if found is not None else []
        elif instruction == "RUN":
            image.mounts = list(_mounts(image, rest, stages))
            for _, line in logical_lines(rest.split("\n")):
                yield from read_commands(line, image, source.path, first)
            image.mounts = []
        if max(begun, copies) > _MOST:
            raise UsageError(f"{source.path} cannot be read: it has more than {_MOST} stages or copies.")
    yield Unclear(f"{source.path} has no installation of Lightning by its name; it may be in the base image", True)


_WORD = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_HEREDOC = re.compile(r"<<-?[\"']?([A-Za-z_]\w{0,99})")


def _instructions(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Each with the number of its first line, and continued lines joined by blanks. The text of a heredoc follows its
    command, a line for a line."""
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
                continue  # within an instruction both are passed over
            parts.append(line[:-1] if line.endswith("\\") else line)
            if not line.endswith("\\"):
                break
        if not parts:
            continue
        found = _WORD.match(" ".join(parts))
        if found is None:
            continue
        rest = found[2]
        heredoc = _HEREDOC.search(rest) if found[1].upper() in ("RUN", "COPY", "ADD") else None
        if heredoc is not None and last.get(heredoc[1], -1) >= at:
            body = at
            while lines[at].strip() != heredoc[1]:
                at += 1
            rest = "\n".join([rest[: heredoc.start()], *lines[body:at]])
            at += 1
        yield first + 1, found[1].upper(), rest


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _set(image: Image, rest: str) -> None:
    words = _words(rest)
    if words and "=" not in words[0] and len(words) > 1:  # ENV NAME value
        words = [f"{words[0]}={' '.join(words[1:])}"]
    for word in words:
        name, is_set, value = word.partition("=")
        if is_set:
            image.variables[name] = image.expand(value)


_TELLING = ((re.compile(r"python:(\d+\.\d+)"), "python=={}.*"), (re.compile(r"pytorch:(\d+\.\d+\.\d+)"), "torch=={}"))
"""Patterns for the last part of an image's name, and the package version that such an image has."""


def _begin(image: Image, rest: str, stages: dict[str, Stage]) -> Iterator[Spec]:
    words = [word for word in rest.split() if not word.startswith("--")]
    if not words:
        return
    before = stages.get(words[0].lower())
    image.stage = Stage(before, before.workdir if before is not None else "/")
    image.directory = image.stage.workdir
    stages[str(sum(name.isdigit() for name in stages))] = image.stage
    if len(words) > 2 and words[1].lower() == "as":
        stages[words[2].lower()] = image.stage
    for pattern, spec in _TELLING:
        found = pattern.match(words[0].rpartition("/")[2])
        if found:
            yield Spec(spec.format(found[1]), group=("base image",))


def _copy(image: Image, rest: str, stages: dict[str, Stage]) -> Optional[Copy]:
    rest = rest.partition("\n")[0]
    options: list[str] = []
    words: list[str] = []
    for word in rest.split() if "[" in rest else _words(rest):
        (options if word.startswith("--") and not words else words).append(word)
    if words and words[0].startswith("["):
        try:
            listed = json.loads(" ".join(words))
        except (ValueError, RecursionError):
            return None
        words = [word for word in listed if isinstance(word, str)] if isinstance(listed, list) else []
    words = [image.expand(word) for word in words]
    if len(words) < 2:
        return None
    stage = None
    for option in options:
        if option.startswith("--from="):
            stage = stages.get(image.expand(option[7:]).lower())
            if stage is None:  # another image
                return None
    sources = [source for source in words[:-1][:_MOST] if "://" not in source]
    if stage is None:
        sources = [posixpath.normpath("/" + source.lstrip("/")) for source in sources]
    return Copy(sources, image.path(words[-1]), stage)


def _mounts(image: Image, rest: str, stages: dict[str, Stage]) -> Iterator[Copy]:
    for word in rest.split():
        if not word.startswith("--"):
            return
        if not word.startswith("--mount="):
            continue
        options = dict(part.partition("=")[::2] for part in word[8:].split(","))
        source = options.get("source", options.get("src", "/"))
        target = options.get("target", options.get("dst", options.get("destination", "")))
        stage = stages.get(options["from"].lower()) if "from" in options else None
        if options.get("type", "bind") == "bind" and target and (stage is not None or "from" not in options):
            inside = posixpath.normpath("/" + image.expand(source).lstrip("/"))
            yield Copy([inside], image.path(image.expand(target)), stage)
