"""Read the packages that a notebook installs with ``!pip install`` or ``%pip install``."""

from __future__ import annotations

import re
from typing import Iterator

from lightning_patches.cli import _files
from lightning_patches.cli.audit.sources.commands import Shell
from lightning_patches.cli.audit.sources.items import Checkout, Gap, Item, Kind, Source
from lightning_patches.cli.audit.sources.lines import logical_lines, uses_patches

IMPORT = re.compile(r"\s*(?:import|from)\s+(?:pytorch_lightning|lightning(?:_fabric)?)\b(?!_)")
"""The beginning of a line that imports Lightning."""
_COMMANDS = ("!", "%", "pip install", "conda install")
_SCRIPTS = ("%%bash", "%%sh", "%%script")
"""Magic words of cells that a shell runs."""


def read_notebook(source: Source) -> Iterator[Item]:
    data = _files.parse_json(source.text)
    cells = data.get("cells") or [cell for sheet in data.get("worksheets", ()) for cell in sheet["cells"]]
    shell = Shell(source, Checkout(source.place, source.directory, source.place.root))
    imports = False
    for cell in cells:
        text = cell.get("source", cell.get("input", ""))
        lines = _files.lines(text if isinstance(text, str) else "".join(text))
        if cell.get("cell_type") != "code":
            continue
        is_script = lines[:1] != [] and lines[0].startswith(_SCRIPTS)
        for _, line in logical_lines(lines):
            imports |= IMPORT.match(line) is not None
            yield from uses_patches(line)
            if is_script or line.lstrip().startswith(_COMMANDS):
                yield from shell.read(line.lstrip().lstrip("!%"), 1)
    if imports:
        what = "imports Lightning and does not install it, so the release is unknown"
        yield Gap(source.path, what, Kind.NO_RELEASE)
