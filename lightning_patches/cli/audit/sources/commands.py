"""Read commands that install packages: ``pip install``, ``conda install``, ``uv sync`` and others."""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import Callable, Iterator, Optional

from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.audit.requirements import conda_spec
from lightning_patches.cli.audit.sources.items import Group, Include, Item, Place, Skipped, Source, Spec
from lightning_patches.cli.audit.sources.lines import WITH_FILE, option_of, uses_patches

MAX_COMMANDS = 1 << 20
"""Most characters of commands that are read in one file. The lexer reads about a megabyte per second."""
_MAY_INSTALL = re.compile(r"install|sync|create|env|update|patches")
_WITH_VALUE = ("-n", "--name", "-p", "--prefix", "-i", "--index-url", "--extra-index-url", "-t", "--target", "--python")
_LOCK_FILES = {
    "poetry": "poetry.lock",
    "uv": "uv.lock",
    "pdm": "pdm.lock",
    "pixi": "pixi.lock",
    "pipenv": "Pipfile.lock",
}
"""Tools that install the packages of a lock file -> the name of that file."""


class Shell:
    """Reads the commands of one file.

    Args:
        source: the file.
        place: the file system in which the commands run.
        expand: a function that replaces the variables in a word.
    """

    def __init__(self, source: Source, place: Place, expand: Optional[Callable[[str], str]] = None) -> None:
        self.directory = "/"
        """The working directory of the next line."""
        self._source = source
        self._place = place
        self._expand = expand
        self._characters_left = MAX_COMMANDS
        self._number = 0
        self._line = 0

    def path(self, path: str) -> str:
        """Resolve a path that is relative to the working directory."""
        return posixpath.normpath(posixpath.join(self.directory, path))

    def read(self, line: str, number: int) -> Iterator[Item]:
        """Read a line of commands.

        Args:
            line: the line.
            number: its number in the file, or the number of an earlier line.
        """
        if self._characters_left < 0 or ("$" not in line and not _MAY_INSTALL.search(line)):
            return
        path, self._line = self._source.path, number
        self._characters_left -= len(line)
        if self._characters_left < 0:
            most = MAX_COMMANDS >> 20
            yield Skipped(f"{path}, line {number}: more than {most} MB of commands; the rest was not read")
            return
        before = self.directory
        try:
            for words in _commands(line):
                self._number += 1
                words = [part for word in words for part in self._expanded(word)]
                if words[:1] == ["cd"] and len(words) > 1:
                    self.directory = self.path(words[1])
                elif words:
                    yield from self._read_command(words)
        except ValueError:
            if re.search(r"\b(?:pip|conda|mamba)\b", line) and re.search(r"lightning", line, re.IGNORECASE):
                raise UsageError(f"{path}: a command on line {number} or below cannot be understood.") from None
        finally:
            self.directory = before

    def _expanded(self, word: str) -> list[str]:
        return self._expand(word).split() if self._expand and "$" in word else [word]

    def _read_command(self, words: list[str]) -> Iterator[Item]:
        names = [posixpath.basename(word) for word in words]
        yield from uses_patches(" ".join(names))
        for tool, name in enumerate(names):
            verb = next((i for i in range(tool + 1, min(tool + 9, len(names))) if not names[i].startswith("-")), tool)
            if name in _LOCK_FILES and names[verb] in ("install", "sync"):
                yield self._include(_LOCK_FILES[name], is_needed=False)
            elif re.fullmatch(r"pip[\d.]*", name) and names[verb] == "install":
                yield from self._read_pip(words[verb + 1 :])
            elif name in ("conda", "mamba", "micromamba") and names[verb] in ("install", "create", "env", "update"):
                yield from self._read_conda(words[verb + 1 :])
            else:
                continue
            return

    def _read_pip(self, words: list[str]) -> Iterator[Item]:
        for before, word in zip(["", *words], words):
            option, value = option_of(word)
            if before in WITH_FILE or (option in WITH_FILE and value):
                yield self._include(value or word, is_requirements_file=True)
            elif word.startswith((".", "/")) and not word.endswith((".whl", ".gz", ".zip")):
                yield self._include(posixpath.join(word.partition("[")[0], "pyproject.toml"), is_needed=False)
            elif not word.startswith("-") and before not in _WITH_VALUE:
                yield Spec(word, after=self._line, written=word, group=self._group)

    def _read_conda(self, words: list[str]) -> Iterator[Item]:
        for before, word in zip(["", *words], words):
            if before in (*_WITH_VALUE, "-c", "--channel"):
                continue
            path = word if before in ("-f", "--file") else word[7:] if word.startswith("--file=") else ""
            if path:
                yield self._include(path)
            elif not word.startswith("-"):
                yield Spec(conda_spec(word), after=self._line, written=word, group=self._group)

    def _include(self, path: str, is_requirements_file: bool = False, is_needed: bool = True) -> Include:
        return Include(self.path(path), self._place, self._line, self._group, is_requirements_file, is_needed)

    @property
    def _group(self) -> Group:
        """A separate group for each command."""
        return (f"command {self._number}",)


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
