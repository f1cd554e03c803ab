"""Each module of the package imports only what ``upstream/DESIGN.md`` allows, inside functions, too."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.unit.fakes import ROOT

PACKAGE = ROOT / "lightning_patches"
DESIGN = ROOT / "upstream" / "DESIGN.md"


def layers() -> dict[str, set[str]]:
    """The table of ``upstream/DESIGN.md``: for each module, the modules that it may import; ``""`` is the package."""
    rows = re.findall(r"^\| `([\w.]+)` \|.*\| (.*) ?\|$", DESIGN.read_text(), re.M)
    allowed: dict[str, set[str]] = {}
    for module, text in rows:
        names = {"" if name == PACKAGE.name else name for name in re.findall(r"`([\w.]+)`", text)}
        allowed[module] = names | (allowed["engine"] if "the imports of `engine`" in text else set())
    return allowed


ALLOWED = layers()


def imports(path: Path) -> set[str]:
    """Modules of this package that a file imports, ``""`` for the package itself."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.partition(".")[2] for name in names if f"{name}.".startswith("lightning_patches.")}
    return found


def layer(path: Path) -> str:
    """The longest module in the table that a file is or belongs to."""
    module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    return max((one for one in ALLOWED if f"{module}.".startswith(f"{one}.")), key=len, default=module)


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_module_imports_only_allowed_layers(path: Path) -> None:
    allowed = ALLOWED[layer(path)]
    wrong = {
        name
        for name in imports(path)
        if not any(f"{name}.".startswith(f"{one}.") if one else not name for one in allowed)
    }
    assert not wrong, f"{layer(path)} may import only {sorted(allowed)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_private_helpers_of_patches_are_used_only_by_patches(path: Path) -> None:
    private = {name for name in imports(path) if name.startswith("patches._")}
    assert not private or layer(path) == "patches"


def test_design_page_lists_every_layer() -> None:
    assert set(ALLOWED) == {layer(path) for path in FILES}
