"""Read untrusted files, with limits.

    with _files.parsing(path):
        data = _files.parse_json(_files.read_text(path))

raises :class:`UsageError` with the file's name if the file cannot be read or parsed. No message quotes the content of a
file.
"""

from __future__ import annotations

import codecs
import importlib
import json
import os
import re
from contextlib import contextmanager
from typing import Any, Iterator, Optional

from lightning_patches.cli._exit_status import UsageError
from lightning_patches.system import open_regular as open_regular
from lightning_patches.system import read_regular

MAX_BYTES = 16 << 20
"""Largest file that :func:`read` accepts, in bytes. The largest lock files have a few megabytes."""
MAX_PARSED = 4 << 20
"""Largest file of TOML, YAML or requirements, in bytes. Parsing a megabyte may take seconds."""
MAX_SCRIPT = 192 << 10
"""Largest Python script, in bytes. Below Python 3.11, an expression that is nested 130,000 levels deep (two bytes per
level) crashes Python's parser."""
MAX_LINE = 4096
"""Longest line that is matched with patterns, in characters. No symptom and no requirement is longer."""
MAX_DEPTH = 100
"""Most levels of nesting in YAML, and most parts of a key in TOML. Real files have far fewer."""


def read(path: str, most: int = MAX_BYTES) -> bytes:
    """Read a file.

    Raises:
        UsageError: the file can't be read, or is larger than ``most`` bytes.
    """
    try:
        return read_regular(path, most)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def read_text(path: str, most: int = MAX_BYTES) -> str:
    """Read a text file.

    Raises:
        UsageError: it cannot be read, is too large, or is not text.
    """
    found = read(path, most)
    is_wide = found.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # PowerShell writes UTF-16
    try:
        return found.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path} cannot be read: it is not text") from None


def inside(root: str, path: str) -> Optional[str]:
    """Resolve all links of a path. Return ``None`` if it leads out of the directory ``root``."""
    try:
        real = os.path.realpath(path)
        top = os.path.realpath(root)
    except (OSError, ValueError):  # links in a circle on Windows, or a null byte in the name: it cannot be opened
        return path
    return real if real == top or real.startswith(os.path.join(top, "")) else None


def lines(text: str) -> list[str]:
    """Split a text into lines, each cut to :data:`MAX_LINE` characters."""
    return [line[:MAX_LINE] for line in text.splitlines()]


class MalformedError(ValueError):
    """The content of a file does not have the expected format. The message contains no text of the file."""


@contextmanager
def parsing(path: str) -> Iterator[None]:
    """Convert errors of parsers, and errors from missing parts of the parsed data, to ``UsageError``.

    Raises:
        UsageError: the file can't be parsed.
    """
    try:
        yield
    except (RecursionError, MemoryError):
        raise UsageError(f"{path} cannot be understood: it is nested too deeply") from None
    except (MalformedError, SyntaxError) as error:
        raise UsageError(f"{path} cannot be understood: {' '.join(str(error).split())[:200]}") from None
    except (ValueError, TypeError, AttributeError, LookupError):
        raise UsageError(f"{path} cannot be understood: it does not have the structure of such a file") from None


def parse_json(text: str) -> Any:
    """Parse JSON. All numbers become floats, because Python takes a long time to convert a huge integer.

    Raises:
        MalformedError: it is not JSON.
    """
    try:
        return json.loads(text, parse_int=float)
    except json.JSONDecodeError as error:
        raise MalformedError(f"line {error.lineno} is not valid JSON") from None


def parse_toml(text: str) -> Any:
    """Parse TOML.

    Raises:
        MalformedError: it is not TOML.
        UsageError: no library for TOML is installed.
    """
    toml = _library("TOML", "use Python 3.11, or `pip install tomli`", "tomllib", "tomli")
    for line in text.splitlines():
        if line.count(".") <= MAX_DEPTH:
            continue
        # The parser's time grows with the square of the number of parts in a key.
        keys = re.split(r"[^\w.\s'-]", re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*"?', "", line))
        if max(key.count(".") for key in keys) > MAX_DEPTH:
            raise MalformedError(f"a key has more than {MAX_DEPTH} parts")
    try:
        return toml.loads(text)
    except ValueError as error:
        place = re.search(r"\(at (line \d+), column", str(error))
        raise MalformedError(f"{place[1] if place else 'it'} is not valid TOML") from None


class YamlText(str):
    """A scalar of a YAML file, with the number of the line on which its text begins."""

    __slots__ = ("line",)
    line: int


def parse_yaml(text: str) -> Any:
    """Parse YAML into dicts, lists and :class:`YamlText`. Numbers are not converted: ``3.10`` stays ``"3.10"``.

    Raises:
        MalformedError: it is not YAML, or nested more than ``MAX_DEPTH`` levels deep.
        UsageError: no library for YAML is installed.
    """
    yaml = _library("YAML", "`pip install PyYAML`", "yaml")

    class Plain(yaml.BaseLoader):  # type: ignore[misc,name-defined]
        """Limit the depth in PyYAML without libyaml, whose time grows with the square of the depth."""

        def fetch_flow_collection_start(self, token: Any) -> None:
            if self.flow_level > MAX_DEPTH:
                raise MalformedError("it is nested too deeply")
            super().fetch_flow_collection_start(token)

    try:
        return _built(yaml, yaml.parse(text, Loader=getattr(yaml, "CBaseLoader", Plain)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise MalformedError(f"{f'line {mark.line + 1}' if mark else 'it'} is not valid YAML") from None


def _built(yaml: Any, events: Iterator[Any]) -> Any:
    """Build the data of a YAML document from its events, since some builds of libyaml crash on deep nesting."""
    opened: list[tuple[Any, list[Any]]] = [(None, [])]
    """The collections that have not ended: the event of each, and its items. The first contains the documents."""
    anchors: dict[str, Any] = {}
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            if len(opened) > MAX_DEPTH:
                raise MalformedError("it is nested too deeply")
            opened.append((event, []))
        elif isinstance(event, (yaml.NodeEvent, yaml.CollectionEndEvent)):
            if isinstance(event, yaml.ScalarEvent):
                value: Any = YamlText(event.value)
                value.line = event.start_mark.line + (2 if event.style in ("|", ">") else 1)
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchors:
                    raise MalformedError(f"line {event.start_mark.line + 1} is not valid YAML")
                value = anchors[event.anchor]
            else:
                event, value = opened.pop()
                value = _mapping(value) if isinstance(event, yaml.MappingStartEvent) else value
            opened[-1][1].append(value)
            anchors[event.anchor] = value
    documents = opened[0][1]
    if len(documents) > 1:
        raise MalformedError("it has more than one document")
    return documents[0] if documents else None


def _mapping(items: list[Any]) -> dict[str, Any]:
    if not all(isinstance(key, str) for key in items[::2]):
        raise MalformedError("a key is not text")
    return dict(zip(items[::2], items[1::2]))


def _library(format_: str, remedy: str, *names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise UsageError(f"to read {format_}, {remedy} beside lightning-patches.")
