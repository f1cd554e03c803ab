"""Read the packages that a notebook installs with ``!pip install`` or ``%pip install``."""

from __future__ import annotations

import re
from typing import Iterator

from lightning_patches.cli import _files
from lightning_patches.cli.audit.sources.commands import Shell
from lightning_patches.cli.audit.sources.items import Checkout, Item, Source, Unclear
from lightning_patches.cli.audit.sources.lines import logical_lines, uses_patches


def read_notebook(source: Source) -> Iterator[Item]:
    data = _files.parse_json(source.text)
    cells = data.get("cells") or [cell for sheet in data.get("worksheets", ()) for cell in sheet["cells"]]
    shell = Shell(source, Checkout(source.directory, source.place))
    imports = False
    for cell in cells:
        text = cell.get("source", cell.get("input", ""))
        lines = _files.lines(text if isinstance(text, str) else "".join(text))
        if cell.get("cell_type") != "code":
            continue
        for _, line in logical_lines(lines):
            imports |= re.match(r"\s*(?:import|from)\s(?:pytorch_lightning|lightning(?!_))", line) is not None
            yield from uses_patches(line)
            if line.lstrip().startswith(("!", "%")):
                yield from shell.read(line.lstrip().lstrip("!%"), 1)
    if imports:
        yield Unclear(f"{source.path} imports Lightning and does not install it, so the release is unknown", True)
