"""What commands install: `pip install`, `conda install` and their like, in Dockerfiles, workflows and notebooks.

A path in a command is one of the machine on which it runs. :class:`Place` tells which file of the project that is, and
no other file is ever read.
"""

from __future__ import annotations

import fnmatch
import json
import os
import posixpath
import re
import shlex
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Optional

from lightning_patches.cli import UsageError, _files
from lightning_patches.cli._requirements import Asked, conda_spec

_MOST = 100
"""Files that are included, and stages and copies of a Dockerfile."""
_MOST_EXPANDED = 1 << 20
"""Characters that variables may stand for, in all of a Dockerfile."""
_HAS_PATCHES = re.compile(r"lightning[-_]patches|LIGHTNING_PATCHES[\s=:]{1,2}[\"']?(?!0|off|false|none)")

Locate = Callable[[str], Optional[str]]
"""A path of the machine that is set up -> the file of the project that is there; ``None`` for one that is not of it."""


def has_patches(text: str) -> bool:
    """Whether it asks for lightning-patches, or starts a program with them."""
    return _HAS_PATCHES.search(text) is not None


def logical_lines(lines: list[str], begin: int = 0) -> Iterator[tuple[int, str]]:
    """Lines with the number of their first one; one that ends in a backslash goes on in the next."""
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


def read_pip(
    path: str, asked: Asked, place: str = "", locate: Locate = lambda path: path, paths: Any = os.path
) -> None:
    """A requirements file of pip, and those that it includes. Paths and pip's options are passed over; what is neither
    goes to ``unclear``.

    Args:
        path: as the machine that is set up has it.
        asked: takes what is found.
        place: where it is named, "" for the command line.
        locate: where that file is here.
        paths: how that machine writes paths, ``posixpath`` or ``ntpath``.

    Raises:
        UsageError: a file cannot be read, or there are too many.
    """
    left = [path]
    top = os.path.realpath(os.path.dirname(path))
    while left:
        path = left.pop()
        file = _new_file(path, asked, place, locate)
        for number, line in logical_lines(_files.lines(_files.read_text(file))) if file else ():
            line = _without_comment(line)
            place = f"{file}, line {number}"
            option, value = option_of(line)
            if option in WITH_FILE:
                if "://" in value:
                    asked.unclear.append(f"{place}: {value[:200]} is at an address, and was not fetched")
                else:
                    left.append(paths.normpath(paths.join(paths.dirname(path), value)))
                continue
            if option in ("-e", "--editable"):
                line = value
            line = _without_options(line)
            if not line or asked.add(line, place, file, number):
                continue
            first = line.split()[0]
            if not line.startswith(("-", ".")) and "://" not in first and not re.search(r"[/\\]", first):
                # What is elsewhere on this machine is not for those who have asked for it.
                said = f": {line[:200]!r}" if os.path.realpath(file).startswith(os.path.join(top, "")) else ""
                asked.unclear.append(f"{place}{said} cannot be understood")


def _new_file(path: str, asked: Asked, place: str, locate: Locate) -> str:
    """The file of the project that is at a path; "" if there is none, or it was read before."""
    file = locate(path)
    if file is None:
        asked.unclear.append(f"{place}: {path[:200]} is not in the project, or not copied from it, and was not read")
        return ""
    try:
        real = os.path.realpath(file)
    except (OSError, ValueError):
        real = file  # reading it tells what is wrong
    if real in asked.read:
        return ""
    asked.read.add(real)
    if len(asked.read) > _MOST:
        raise UsageError(f"{file} is the last of {_MOST} files that are included: more are not read.")
    return file


def _without_comment(line: str) -> str:
    if line.startswith("#"):
        return ""
    return re.split(r"\s#", line, maxsplit=1)[0].strip()


def _without_options(line: str) -> str:
    return re.split(r"\s--", line, maxsplit=1)[0].strip()


def option_of(line: str) -> tuple[str, str]:
    """``-r x``, ``-rx``, ``--requirement=x`` as option and value."""
    for option in ("-r", "-c", "-e", "--requirement", "--constraint", "--editable"):
        rest = line[len(option) :]
        if line.startswith(option) and (rest[:1] in (" ", "\t", "=") or (rest and option[1] != "-")):
            return option, rest.lstrip(" \t=").strip("'\"")
    return "", ""


# -------------------------------------------------------------------- commands


def read_commands(line: str, asked: Asked, place: str, file: str, number: int, here: Place) -> None:
    """A line for a shell.

    Raises:
        UsageError: it names Lightning, and cannot be understood.
    """
    begun = here.directory
    try:
        for words in _commands(line):
            words = [part for word in words for part in here.expanded(word)]
            if words[:1] == ["cd"] and len(words) > 1:
                here.directory = here.path(words[1])
            elif words:
                _read_command(words, asked, place, file, number, here)
    except ValueError:
        if re.search(r"\b(?:pip|conda|mamba)\b", line) and re.search(r"lightning", line, re.IGNORECASE):
            raise UsageError(f"{place}: {line.strip()[:200]!r} cannot be understood.") from None
    finally:
        here.directory = begun


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


def _read_command(words: list[str], asked: Asked, place: str, file: str, number: int, here: Place) -> None:
    names = [posixpath.basename(word) for word in words]
    asked.has_patches |= "lightning-patches" in names or "lightning_patches" in names
    for tool, name in enumerate(names):
        verb = next((i for i in range(tool + 1, min(tool + 9, len(names))) if not names[i].startswith("-")), tool)
        if name in _LOCKED and names[verb] in ("install", "sync"):
            _read_project(here.path(_LOCKED[name]), asked, place, here)
        elif re.fullmatch(r"pip[\d.]*", name) and names[verb] == "install":
            _read_pip_command(words[verb + 1 :], asked, place, file, number, here)
        elif name in ("conda", "mamba", "micromamba") and names[verb] in ("install", "create", "env", "update"):
            _read_conda_command(words[verb + 1 :], asked, place, file, number, here)
        else:
            continue
        return


def _read_pip_command(words: list[str], asked: Asked, place: str, file: str, number: int, here: Place) -> None:
    for before, word in zip(["", *words], words):
        option, value = option_of(word) if word.startswith("-") else ("", "")
        if before in WITH_FILE or (option in WITH_FILE and value):
            read_pip(here.path(value or word), asked, place, here.locate, posixpath)
        elif word.startswith((".", "/")) and not word.endswith((".whl", ".gz", ".zip")):
            project = here.path(posixpath.join(word.partition("[")[0], "pyproject.toml"))
            _read_project(project, asked, place, here)
        elif not word.startswith("-") and before not in _WITH_VALUE:
            asked.add(word, place, file, number)


def _read_conda_command(words: list[str], asked: Asked, place: str, file: str, number: int, here: Place) -> None:
    for before, word in zip(["", *words], words):
        if before in (*_WITH_VALUE, "-c", "--channel"):
            continue
        path = word if before in ("-f", "--file") else word[7:] if word.startswith("--file=") else ""
        if path:
            _read_project(here.path(path), asked, place, here)
        elif not word.startswith("-"):
            asked.add(conda_spec(word), place, file, number)


def _read_project(path: str, asked: Asked, place: str, here: Place) -> None:
    from lightning_patches.cli import _projects

    file = _new_file(path, asked, place, here.locate)
    if file:
        _projects.read_into(file, asked)


@dataclass
class Place:
    """Where commands run: a checkout.

    Args:
        root: the directory of the project, of which no file is left.
        directory: the one in which they run, below the root.
    """

    root: str
    directory: str = "/"

    def path(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.directory, path))

    def locate(self, path: str) -> Optional[str]:
        return within(self.root, path)

    def expanded(self, word: str) -> list[str]:
        return [word]


def within(root: str, path: str) -> Optional[str]:
    """The file of this path below a directory, if there is one that is really there."""
    real = os.path.realpath(root)
    try:
        found = os.path.realpath(os.path.join(real, path.lstrip("/")))
        is_there = os.path.isfile(found) and found.startswith(os.path.join(real, ""))
    except (OSError, ValueError):
        return None
    return os.path.normpath(os.path.join(root, os.path.relpath(found, real))) if is_there else None


# -------------------------------------------------------------------- Dockerfiles


@dataclass
class Copy:
    """``COPY`` or ``ADD``: some of these are at a path of the image, or below it."""

    sources: list[str]
    to: str
    stage: Optional[Stage] = None


@dataclass
class Stage:
    """What is known of one image of a Dockerfile."""

    before: Optional[Stage] = None
    workdir: str = "/"
    copies: list[Copy] = field(default_factory=list)


@dataclass
class Image(Place):
    """Where the RUN lines of a Dockerfile run. The root is the build context.

    Args:
        file: the Dockerfile.
        stage: the image.
        variables: those that ARG and ENV have set.
        left: how many characters the variables may still stand for.
        looks: how many places may still be looked at for files.
        mounts: what one line has bound into the image.
    """

    file: str = ""
    stage: Stage = field(default_factory=Stage)
    variables: dict[str, str] = field(default_factory=dict)
    left: int = _MOST_EXPANDED
    looks: int = 10_000
    mounts: list[Copy] = field(default_factory=list)

    def expanded(self, word: str) -> list[str]:
        return self.expand(word).split() if "$" in word else [word]

    def expand(self, text: str) -> str:
        """``$NAME``, ``${NAME}`` and ``${NAME:-default}``; what is not set stays as it is.

        Raises:
            UsageError: it comes to too much.
        """
        if "$" not in text:
            return text

        def value(found: re.Match[str]) -> str:
            said = self.variables.get(found[1] or found[3], found[2] or found[0])
            self.left -= len(said)
            if self.left < 0:
                raise UsageError(f"{self.file} cannot be read: its variables stand for more than 1 MB of text")
            return said

        return re.sub(r"\$(?:\{(\w{1,99})(?::?-([^{}]{0,999}))?\}|(\w{1,99}))", value, text)[: _files.MAX_LINE]

    def locate(self, path: str) -> Optional[str]:
        """The file of the build context that COPY, ADD or a mount has put at a path of the image."""
        left: list[tuple[Optional[Stage], str]] = [(self.stage, path)]
        while left:
            stage, path = left.pop()
            self.looks -= 10 if stage is None else 1
            if self.looks < 0:
                raise UsageError(f"{self.file} cannot be read: it copies too much")
            if stage is None:
                found = within(self.root, path)
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
    """What a path of the image may have been before it was copied."""
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


def read_dockerfile(path: str, asked: Asked, context: str = "") -> None:
    """What the RUN lines of a Dockerfile install. Where they name no Lightning, it may still be in the image that it
    begins with.

    Args:
        path: of the file.
        asked: takes what is found.
        context: the directory that is handed to ``docker build``; "" for that of the file.

    Raises:
        UsageError: it cannot be read.
    """
    image = Image(context or os.path.dirname(path) or ".", file=path)
    stages: dict[str, Stage] = {}
    lines = _files.lines(_files.read_text(path))
    copies = begun = 0
    for first, end, instruction, rest in _instructions(lines):
        asked.has_patches |= has_patches(f"{instruction} {rest}")
        if instruction in ("ARG", "ENV"):
            _set(image, rest)
        elif instruction == "FROM":
            begun += 1
            _begin(image, image.expand(rest), stages, asked)
        elif instruction == "WORKDIR":
            image.directory = image.stage.workdir = image.path(image.expand(rest.strip()))
        elif instruction in ("COPY", "ADD"):
            copies += 1
            found = _copy(image, rest, stages)
            image.stage.copies += [found] if found is not None else []
        elif instruction == "RUN":
            image.mounts = list(_mounts(image, rest, stages))
            before = len(asked.found)
            for _, line in logical_lines(rest.split("\n")):
                read_commands(line, asked, f"{path}, line {first + 1}", path, first + 1, image)
            image.mounts = []
            asked.put_lines(before, path, lines[first:end], first)
        if max(begun, copies) > _MOST:
            raise UsageError(f"{path} cannot be read: it has more than {_MOST} stages or copies.")


_WORD = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_HEREDOC = re.compile(r"<<-?[\"']?([A-Za-z_]\w{0,99})")


def _instructions(lines: list[str]) -> Iterator[tuple[int, int, str, str]]:
    """Each with the indices of its lines, and continued lines joined by blanks. The text of a heredoc follows its
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
        yield first, at, found[1].upper(), rest


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
"""Images by the last part of their names, and what they bring."""


def _begin(image: Image, rest: str, stages: dict[str, Stage], asked: Asked) -> None:
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
            asked.add(spec.format(found[1]), "", "")


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
