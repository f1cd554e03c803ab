"""Every dotted name of this package in its pages and docstrings exists."""

from __future__ import annotations

import ast
import pkgutil
import re
from pathlib import Path

import pytest

from tests.support.run import check
from tests.unit.fakes import ROOT

NAME = re.compile(r"(?<![\w./-])_?lightning_patches(?:\.[A-Za-z_]\w*)+")
FILES = [
    ROOT / "README.md",
    *sorted((ROOT / "upstream").glob("*.md")),
    *sorted((ROOT / "lightning_patches").rglob("*.py")),
]


def mentioned(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        # Docstrings, those of attributes, and messages.
        strings = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        text = "\n".join(value for value in strings if isinstance(value, str))
    found = {match.group() for match in NAME.finditer(text)}
    return {name for name in found if not name.startswith("_") and not name.endswith((".py", ".egg", ".json"))}


MENTIONED = {name: path for path in FILES for name in mentioned(path)}


def test_names_in_messages_are_collected() -> None:
    assert {"lightning_patches.watch_hangs", "lightning_patches.activate"} <= set(MENTIONED)


@pytest.mark.parametrize("name", sorted(MENTIONED))
def test_name_in_a_message_exists(name: str) -> None:
    assert pkgutil.resolve_name(name) is not None, MENTIONED[name]


def test_public_names_need_no_import_of_their_module() -> None:
    """The program does not import the modules that define them."""
    program = (
        "import lightning_patches\nprint([hasattr(lightning_patches, name) for name in lightning_patches.__all__])"
    )
    assert "False" not in check(program)
