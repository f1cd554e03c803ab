"""Modules import only layers that ``upstream/DESIGN.md`` allows, and never in a circle, not even in functions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.unit.fakes import ROOT

PACKAGE = ROOT / "lightning_patches"
DESIGN = ROOT / "upstream" / "DESIGN.md"
FILES = sorted(PACKAGE.rglob("*.py"))


def layers() -> dict[str, list[str]]:
    """The table of ``upstream/DESIGN.md``, from bottom to top: for each layer, the modules that it may import."""
    found = {}
    for layers, names in re.findall(r"^\| (`[\w.`, ]+`) \|.*\| (.*) ?\|$", DESIGN.read_text(), re.M):
        for name in re.findall(r"`([\w.]+)`", layers):
            found[name] = [one.replace(PACKAGE.name, "__init__") for one in re.findall(r"`([\w.]+)`", names)]
    return found


ALLOWED = layers()


def module_of(path: Path) -> str:
    """The name of a file's module, without the name of the package, which is ``__init__`` itself."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def is_in(module: str, layer: str) -> bool:
    return f"{module}.".startswith(f"{layer}.")


def layer_of(module: str) -> str:
    return max((layer for layer in ALLOWED if is_in(module, layer)), key=len, default=module)


def imports(path: Path, at_run_time: bool = False) -> set[str]:
    """Modules of this package that a file imports, also in functions and with ``import_module``.

    Args:
        path: the file.
        at_run_time: leave out the imports for type checkers.
    """
    names = set()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if at_run_time and isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            text = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            names |= {str(text.value).rstrip(".")} if isinstance(text, ast.Constant) else set()
    return {name.partition(".")[2] or "__init__" for name in names if is_in(name, PACKAGE.name)}


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through other modules of the group."""

    def reached(module: str) -> set[str]:
        found, waiting = set(), [module]
        while waiting:
            new = imports[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    reachable = {module: reached(module) for module in imports}
    found: list[list[str]] = []
    for module in sorted(imports):
        circle = sorted(other for other in reachable[module] if module in reachable[other])
        if circle and circle not in found:
            found.append(circle)
    return found


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    paths = {module_of(path): path for path in FILES}
    imported: dict[str, set[str]] = {}
    for module, path in paths.items():
        names = {name if name in paths else name.rpartition(".")[0] for name in imports(path, at_run_time=True)}
        imported[module] = (names & set(paths)) - {module}
    assert circles(imported) == []


def test_modules_import_only_allowed_layers() -> None:
    wrong = [
        f"{module} imports {name}"
        for path in FILES
        for module in [module_of(path)]
        for name in sorted(imports(path))
        if not any(is_in(name, one) for one in [layer_of(module), *ALLOWED[layer_of(module)]])
    ]
    assert not wrong, "upstream/DESIGN.md says what a layer may import"


def test_private_helpers_of_patches_are_used_only_by_patches() -> None:
    users = {module_of(path) for path in FILES for name in imports(path) if name.startswith("patches._")}
    assert {layer_of(user) for user in users} == {"patches"}


def test_table_lists_every_layer_above_those_that_it_may_import() -> None:
    assert set(ALLOWED) == {layer_of(module_of(path)) for path in FILES}
    order = list(ALLOWED)
    for layer, names in ALLOWED.items():
        assert [name for name in names if order.index(layer_of(name)) >= order.index(layer)] == [], layer
