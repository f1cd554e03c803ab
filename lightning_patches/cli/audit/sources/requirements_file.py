"""Read requirements files of pip."""

from __future__ import annotations

import re
from typing import Iterator

from lightning_patches.cli import _files
from lightning_patches.cli.audit.sources.items import Item, Source
from lightning_patches.cli.audit.sources.lines import logical_lines, read_pip_line
from lightning_patches.cli.audit.sources.locks import is_explicit, read_explicit

_BARE = re.compile(r"[A-Za-z][\w.-]*(?:\[[\w, -]*\])?|-.*|\S*[/\\]\S*")
_WITH_VERSION = re.compile(r"[A-Za-z][\w.-]*\s*(?:\[[\w, -]*\])?\s*(?:[<>=!~]=|[<>=;@]).*")


def read_requirements_file(source: Source) -> Iterator[Item]:
    if is_explicit(source.text):
        yield from read_explicit(source)
        return
    for number, line in logical_lines(_files.lines(source.text)):
        yield from read_pip_line(line, number, source)


def looks_like_requirements(text: str) -> bool:
    """True if at least half of the lines are requirements, and one of them has a version."""
    lines = [line for line in map(str.strip, _files.lines(text)) if line and not line.startswith("#")]
    versions = sum(_WITH_VERSION.fullmatch(line) is not None for line in lines)
    others = sum(_BARE.fullmatch(line) is not None for line in lines)
    return is_explicit(text) or (bool(versions) and 2 * (versions + others) >= len(lines))
