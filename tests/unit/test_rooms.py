"""Which room of the package may import from which, imports inside of functions included."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.unit.fakes import ROOT

PACKAGE = ROOT / "lightning_patches"
EVERYBODY = {"errors", "patch", "trust"}
ENGINE = {*EVERYBODY, "system", "notices", "removed", "unpatched", "engine"}
ABOUT_FUNCTIONS = {f"engine.looks.{name}" for name in ("home_of", "is_traced", "names_in", "skip_frames", "stock_of")}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "system": set(),
    "patch": set(),
    "permissions": set(),
    "trust": {"notices", "permissions"},
    "notices": {"errors"},
    "removed": {"patch"},
    "unpatched": {"patch"},
    "engine": ENGINE,
    "patches": {"patch", "notices", "removed", "trust", "engine.distributions", *ABOUT_FUNCTIONS, "patches"},
    "ranks": {"notices", "errors", "system", "ranks"},
    "doctor": {*ENGINE, "patches", "ranks", "doctor"},
    "activation": {*ENGINE, "patches", "ranks", "activation", ""},
    "fork": {*ENGINE, "patches", "fork", ""},
    "cli": {*ENGINE, "permissions", "patches", "ranks", "doctor", "activation", "fork", "cli", ""},
    "__init__": {*ENGINE, "ranks", "activation"},
    "__main__": {"cli"},
}


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


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_file_imports_from_the_rooms_that_it_may(path: Path) -> None:
    allowed = ALLOWED[room(path)]
    wrong = {
        name
        for name in imports(path)
        if not any(f"{name}.".startswith(f"{one}.") if one else not name for one in allowed)
    }
    assert not wrong, f"{room(path)} may import from {sorted(allowed)} only"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_only_the_catalogues_own_files_use_its_helpers(path: Path) -> None:
    private = {name for name in imports(path) if name.startswith("patches._")}
    assert not private or room(path) == "patches"


def test_the_table_speaks_of_the_rooms_that_there_are() -> None:
    assert set(ALLOWED) == {room(path) for path in FILES}
