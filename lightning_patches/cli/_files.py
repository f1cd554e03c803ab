"""Files that a stranger wrote: what is read of them has bounds, and what a parser makes of them is an answer of ours.

    with _files.parsing(path):
        data = json.loads(_files.read_text(path))

ends with status 2 and the file's name where the file cannot be read or understood, and never with a traceback.
"""

from __future__ import annotations

import codecs
import importlib
import json
import re
from contextlib import contextmanager
from typing import Any, Iterator

from lightning_patches.cli import UsageError
from lightning_patches.system import open_regular as open_regular
from lightning_patches.system import read_regular

MAX_BYTES = 16 << 20
"""Of a file that is read as a whole. The largest lock files have some megabytes."""
MAX_SCRIPT = 192 << 10
"""Of a Python script. Below 3.11 the parser of Python itself dies of an expression with 130,000 levels, which takes
two bytes a level."""
MAX_LINE = 4096
"""Of a line that is matched with patterns: no symptom and no requirement is longer."""
MAX_DEPTH = 100
"""Of brackets within each other in YAML, and of the parts of a key in TOML. No file that people use comes near it."""


def read(path: str, most: int = MAX_BYTES) -> bytes:
    """What is in a file.

    Raises:
        UsageError: it cannot be read, or is larger than ``most`` bytes.
    """
    try:
        return read_regular(path, most)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def read_text(path: str, most: int = MAX_BYTES) -> str:
    """The same as text.

    Raises:
        UsageError: it cannot be read, is too large, or is not text.
    """
    found = read(path, most)
    is_wide = found.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # as PowerShell writes what is redirected
    try:
        return found.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path} cannot be read: it is not text") from None


def lines(text: str) -> list[str]:
    """The lines of a text, each cut to :data:`MAX_LINE` characters, to be matched with patterns."""
    return [line[:MAX_LINE] for line in text.splitlines()]


@contextmanager
def parsing(path: str) -> Iterator[None]:
    """Around all that is done with what a file holds, until it has the form that is expected of it.

    Raises:
        UsageError: in place of what a parser raises, or the look for what is not there.
    """
    try:
        yield
    except (RecursionError, MemoryError):
        raise UsageError(f"{path} cannot be understood: it is nested too deeply") from None
    except (ValueError, TypeError, AttributeError, LookupError, SyntaxError) as error:
        said = " ".join(str(error).split())[:200]
        raise UsageError(f"{path} cannot be understood: {said}") from None


def parse_json(text: str) -> Any:
    """JSON, in which all numbers are floats: a large integer takes long to make of its digits."""
    return json.loads(text, parse_int=float)


def parse_toml(text: str) -> Any:
    """TOML.

    Raises:
        UsageError: nothing is installed that reads it.
    """
    toml = _library("TOML", "use Python 3.11, or `pip install tomli`", "tomllib", "tomli")
    for line in text.splitlines():
        # For a key of many parts the parser takes the square of their number.
        keys = re.split(r"[^\w.\s'-]", re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*"?', "", line))
        if max(key.count(".") for key in keys) > MAX_DEPTH:
            raise ValueError(f"a key has more than {MAX_DEPTH} parts")
    return toml.loads(text)


def parse_yaml(text: str) -> Any:
    """YAML, in which every value is text: 3.10 stays what it is.

    Raises:
        UsageError: nothing is installed that reads it.
    """
    yaml = _library("YAML", "`pip install PyYAML`", "yaml")

    class Plain(yaml.BaseLoader):  # type: ignore[misc,name-defined]
        """Where libyaml is not there: it takes the square of the depth."""

        def fetch_flow_collection_start(self, token: Any) -> None:
            if self.flow_level > MAX_DEPTH:
                raise yaml.YAMLError("it is nested too deeply")
            super().fetch_flow_collection_start(token)

    loader = getattr(yaml, "CBaseLoader", Plain)
    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):  # some builds of libyaml's die of the depth when they load
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise ValueError("it is nested too deeply")
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _library(format_: str, remedy: str, *names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise UsageError(f"to read {format_}, {remedy} beside lightning-patches.")
