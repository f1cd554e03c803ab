"""Read commands that install packages: ``pip install``, ``conda install``, ``uv sync`` and others."""

from __future__ import annotations

import itertools
import posixpath
import re
import shlex
from collections import deque
from typing import Iterator, Optional

from lightning_patches.cli import _files
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.audit.requirements import conda_spec, specifier
from lightning_patches.cli.audit.sources.items import (
    PROJECT_FILES,
    Checkout,
    Gap,
    Group,
    Include,
    Item,
    Kind,
    Source,
    Spec,
)
from lightning_patches.cli.audit.sources.lines import (
    EDITABLE,
    WITH_FILE,
    is_directory,
    logical_lines,
    option_of,
    uses_patches,
)

MAX_COMMANDS = 1 << 20
"""Most characters of commands that are read in one file. The lexer reads about a megabyte per second."""
MAX_EXPANDED = 1 << 20
"""Most characters of expanded variables in one file."""
_MATTERS = re.compile(r"[$=>]|\bcd\b|install|sync|create|env|update|patches|add|clone")
"""Lines without these words install nothing, and set no variable and no directory."""
_WITH_VALUE = (
    *("-n", "--name", "-p", "--prefix", "-i", "--index-url", "--extra-index-url", "-t", "--target", "--python"),
    *("-f", "--find-links", "--no-binary", "--only-binary", "--trusted-host", "--group", "-G", "--extra", "-E"),
)
_LOCK_FILES = {
    "poetry": ("poetry.lock", "pyproject.toml"),
    "uv": ("uv.lock", "pyproject.toml"),
    "pdm": ("pdm.lock", "pyproject.toml"),
    "pixi": ("pixi.lock", "pixi.toml", "pyproject.toml"),
    "pipenv": ("Pipfile.lock", "Pipfile"),
}
"""Tools that install the packages of a project -> the files with these packages; the first that exists counts."""
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,99})=(.*)", re.DOTALL)
_MAKE = re.compile(r"^([A-Za-z_]\w{0,99})\s*[:?+]?=\s+(.*)")
"""An assignment of Make: the value is the rest of the line."""
_MAKE_VARIABLE = re.compile(r"\$\((\w{1,99})\)")
_VARIABLES = {
    "PWD": ".",
    **dict.fromkeys(("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "BUILD_SOURCESDIRECTORY", "TRAVIS_BUILD_DIR"), ""),
}
_SETS = ("export", "readonly", "local", "declare", "env", "set")
"""Commands whose arguments are assignments."""
_WRITES = (">", ">>", "-o", "--output", "--output-file")
_PRINTS = ("echo", "printf", "print")


class Shell:
    """Reads the commands of one file.

    Args:
        source: the file.
        place: the file system in which the commands run.
    """

    def __init__(self, source: Source, place: Checkout) -> None:
        self.directory = "/"
        """The working directory of the next command."""
        self.variables = dict(_VARIABLES)
        self._source = source
        self._place = place
        self._characters_left = MAX_COMMANDS
        self._expansions_left = MAX_EXPANDED
        self._number = 0
        self._line = 0

    def path(self, path: str) -> str:
        """Resolve a path that is relative to the working directory."""
        return posixpath.normpath(posixpath.join(self.directory, path)).replace("//", "/")

    def expand(self, text: str) -> str:
        """Expand ``$NAME``, ``${NAME}`` and ``${NAME:-default}``. Unset variables are not changed.

        Raises:
            UsageError: the expanded variables of this file are too long.
        """
        if "$" not in text:
            return text

        def value(found: re.Match[str]) -> str:
            expanded = self.variables.get(found[1] or found[3], found[2] or found[0])
            self._expansions_left -= len(expanded)
            if self._expansions_left < 0:
                raise UsageError(f"{self._source.path} cannot be read: its variables expand to more than 1 MB of text")
            return expanded

        return re.sub(r"\$(?:\{(\w{1,99})(?::?-([^{}]{0,999}))?\}|(\w{1,99}))", value, text)[: _files.MAX_LINE]

    def read(self, line: str, number: int) -> Iterator[Item]:
        """Read a line of commands.

        Args:
            line: the line.
            number: its number in the file, or the number of an earlier line.
        """
        if self._characters_left < 0 or not _MATTERS.search(line):
            return
        self._line = number
        self._characters_left -= len(line)
        if self._characters_left < 0:
            what = f"has more than {MAX_COMMANDS >> 20} MB of commands; the rest was not read"
            yield Gap(f"{self._source.path}, line {number},", what)
            return
        for words in _commands(line):
            self._number += 1
            yield from self._read_command(self._without_assignments(words))

    def _without_assignments(self, words: list[str]) -> list[str]:
        """Set the variables that a command sets, and return its other words with expanded variables."""
        rest = deque(words[1:] if words[:1] and words[0] in _SETS else words)
        while rest and (found := _ASSIGNMENT.fullmatch(rest[0])):
            self.variables[found[1]] = self.expand(found[2])
            rest.popleft()
        return [part for word in rest for part in (self.expand(word).split() if "$" in word else [word])]

    def _read_command(self, words: list[str]) -> Iterator[Item]:
        names = [posixpath.basename(word) for word in words]
        yield from uses_patches(" ".join(names))
        self._place.written |= {self.path(word) for before, word in zip(words, words[1:]) if before in _WRITES}
        if not words or names[0] in _PRINTS:
            return
        if names[0] in ("cd", "pushd") and len(words) > 1 and "$" not in words[1]:
            self.directory = self.path(words[1])
        for before, word in zip(words, words[1:]):
            if re.fullmatch(r"-\w?c|eval|sh|bat", before) and " " in word:  # bash -c "pip install ...", or in Jenkins
                yield from self.read(word, self._line)
        for tool, name in enumerate(names):
            found = self._read_tool(name, names[tool + 1 : tool + 9], words[tool + 1 :])
            if found is not None:
                yield from found
                return

    def _read_tool(self, name: str, names: list[str], words: list[str]) -> Optional[Iterator[Item]]:
        """Return the items of a command; ``None`` if it installs nothing.

        Args:
            name: the program.
            names: its first arguments, without their directories.
            words: its arguments.
        """
        places = [place for place, word in enumerate(names) if not word.startswith("-")]
        if re.fullmatch(r"pip[\d.]*", name):  # options before the command may have values
            places = [place for place in places if names[place] == "install"]
        if not places:
            return None
        verb, words = names[places[0]], words[places[0] + 1 :]
        if re.fullmatch(r"pip[\d.]*", name):
            return self._read_pip(words)
        if name in ("conda", "mamba", "micromamba") and verb in ("install", "create", "env", "update"):
            return self._read_conda(words)
        if name == "git" and verb == "clone":
            self._place.has_clones = True
        if name in _LOCK_FILES and verb in ("install", "sync", "add"):
            return self._read_project(_LOCK_FILES[name], words if verb == "add" or name == "pipenv" else [])
        return None

    def _read_pip(self, words: list[str]) -> Iterator[Item]:
        for before, word in zip(["", *words], words):
            option, value = option_of(word)
            if before in WITH_FILE or (option in WITH_FILE and value):
                yield self._include(value or word, is_requirements_file=True)
            elif before in EDITABLE or (option in EDITABLE and value) or is_directory(word):
                yield from self._read_directory(value or word)
            elif not word.startswith("-") and before not in _WITH_VALUE:
                yield Spec(word, after=self._line, written=word, group=self._group)

    def _read_directory(self, word: str) -> Iterator[Item]:
        if "://" in word:
            yield Spec(word, after=self._line, written=word, group=self._group)
            return
        files = list(self._place.existing(self.path(word.partition("[")[0]), PROJECT_FILES))
        yield from map(self._include, files)
        if not files:
            where = f"{self._source.path}, line {self._line},"
            yield Gap(where, "installs a project from a directory that is not here", Kind.FOREIGN)

    def _read_project(self, names: tuple[str, ...], words: list[str]) -> Iterator[Item]:
        """Read the project in the working directory, and requirements that are added to it."""
        yield from map(self._include, itertools.islice(self._place.existing(self.directory, names), 1))
        for word in words:
            name, at, version = word.partition("@")
            is_constraint = bool(at) and "://" not in version
            yield Spec(name + specifier(version, name) if is_constraint else word, after=self._line, group=self._group)

    def _read_conda(self, words: list[str]) -> Iterator[Item]:
        for before, word in zip(["", *words], words):
            if before in (*_WITH_VALUE, "-c", "--channel") and before not in ("-f", "--file"):
                continue
            path = word if before in ("-f", "--file") else word[7:] if word.startswith("--file=") else ""
            if path:
                yield self._include(path)
            elif not word.startswith("-"):
                yield Spec(conda_spec(word), after=self._line, written=word, group=self._group)

    def _include(self, path: str, is_requirements_file: bool = False) -> Include:
        return Include(self.path(path), self._place, self._line, self._group, is_requirements_file, path)

    @property
    def _group(self) -> Group:
        """A separate group for each command."""
        return (f"command {self._number}",)


def read_script(source: Source) -> Iterator[Item]:
    """Read a shell script, a batch script, a Makefile or another file with one command in a line."""
    shell = Shell(source, Checkout(source.place, source.place.root, source.directory))
    for number, line in logical_lines(_files.lines(source.text)):
        command = line.strip().lstrip("@-")  # Make neither prints these commands nor stops if they fail
        yield from shell.read(_MAKE.sub(r"\1='\2'", _MAKE_VARIABLE.sub(r"${\1}", command)), number)


def _commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&()")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        found = list(lexer)
    except ValueError:  # a quote that is closed on another line
        found = re.sub(r"[\"'`]", " ", re.sub(r"([;|&()])", r" \1 ", line)).split()
    words: list[str] = []
    for word in found:
        if word.strip(";|&()") and not word.startswith("#"):
            words.append(word)
            continue
        yield words
        words = []
        if word.startswith("#"):
            return
    yield words
