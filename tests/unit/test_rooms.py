"""Modules import only layers that ``upstream/DESIGN.md`` allows, and never in a circle, not even in functions."""

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


def imports(path: Path, at_run_time: bool = False) -> set[str]:
    """Modules of this package that a file imports, ``""`` for the package itself.

    Args:
        path: the file.
        at_run_time: leave out the imports for type checkers.
    """
    found = set()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if at_run_time and isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node.body = []
    for node in ast.walk(tree):
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


def module_of(path: Path) -> str:
    """The name of a file's module, without the name of the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that import each other, directly or through other modules of the group."""

    def reached(module: str) -> set[str]:
        found, waiting = set(), [module]
        while waiting:
            new = imports[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    reachable = {module: reached(module) for module in imports}
    found: list[set[str]] = []
    for module in sorted(imports):
        circle = {other for other in reachable[module] if module in reachable[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    paths = {module_of(path): path for path in FILES if not path.is_relative_to(PACKAGE / "activation" / "launcher")}
    imported: dict[str, set[str]] = {}
    for module, path in paths.items():
        names = {name if name in paths else name.rpartition(".")[0] for name in imports(path, at_run_time=True)}
        imported[module] = (names & set(paths)) - {module}
    assert circles(imported) == []


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d", "a"}, "e": set()}) == [{"b", "c"}, {"d"}]


def test_imports_in_functions_are_found_and_those_for_types_are_not(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "from lightning_patches import notices\nif TYPE_CHECKING:\n    from lightning_patches.patch import Patch\n"
        "def function():\n    import lightning_patches.engine.gate\n"
    )
    assert imports(path, at_run_time=True) == {"notices", "engine.gate"}
    assert imports(path) == {"notices", "engine.gate", "patch.Patch"}


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
