"""Read requirements files of pip."""

from __future__ import annotations

from typing import Iterator

from lightning_patches.cli import _files
from lightning_patches.cli.audit.sources.items import Item, Source
from lightning_patches.cli.audit.sources.lines import logical_lines, read_pip_line


def read_requirements_file(source: Source) -> Iterator[Item]:
    for number, line in logical_lines(_files.lines(source.text)):
        yield from read_pip_line(line, number, source)
