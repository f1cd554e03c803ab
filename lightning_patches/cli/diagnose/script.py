"""Find names in a script that Lightning 2.x has removed."""

from __future__ import annotations

import ast
import re
import sys
from typing import Optional

from lightning_patches.cli import _output
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.doctor.script import parse
from lightning_patches.patches.removed import Removed
from lightning_patches.patches.removed import find as find_row

ROOT = r"(?:pytorch_lightning|lightning\.pytorch|lightning)"
_BASES = ("LightningModule", "LightningDataModule", "Callback")
_MOST_NAMES = 8
"""Most attributes in a path of Lightning. Longer chains would take much time; their inner parts are looked up."""
_ENTRY = re.compile(r"^(?:pytorch_lightning|lightning\.pytorch|lightning)(?:\.|$)")


def find(name: str, source: str) -> list[tuple[Removed, int]]:
    """Return the removed names that a script uses, each with its line, from 1.

    The list is empty if the script does not import Lightning.

    Raises:
        UsageError: this Python can't parse the script.
    """
    try:
        script = _Script(parse(source.encode("utf-8", "surrogateescape")))
    except (SyntaxError, ValueError) as error:
        where = f" at line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        version = ".".join(map(str, sys.version_info[:2]))
        reason = _output.shown(getattr(error, "msg", str(error)))
        raise UsageError(f"Python {version} cannot parse {_output.printable(name)}{where}: {reason}") from None
    except (RecursionError, MemoryError):
        raise UsageError(f"{_output.printable(name)} cannot be read: its expressions are nested too deeply") from None
    return sorted(script.found, key=lambda one: one[1]) if script.has_lightning else []


def _module_row(name: str) -> Optional[Removed]:
    """Return the row of a module or of a package that contains it."""
    while name:
        row = find_row("module", name)
        if row is not None:
            return row
        name = name.rpartition(".")[0]
    return None


class _Script(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        self.found: list[tuple[Removed, int]] = []
        self.has_lightning = False
        self.modules: dict[str, str] = {}
        """The script's variables for modules and names of Lightning: ``{"pl": "", "Trainer": "Trainer"}``."""
        self.used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        self.visit(tree)

    def _add(self, row: Optional[Removed], node: ast.AST) -> bool:
        if row is not None:
            self.found.append((row, getattr(node, "lineno", 1)))
        return row is not None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if _ENTRY.match(alias.name):
                self.has_lightning = True
                module = re.sub(rf"^{ROOT}\.?", "", alias.name)
                self.modules[alias.asname or alias.name.partition(".")[0]] = module if alias.asname else ""
                self._add(_module_row(module), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module is None or node.level or not _ENTRY.match(node.module):
            return
        self.has_lightning = True
        module = re.sub(rf"^{ROOT}\.?", "", node.module)
        for alias in node.names:
            whole = f"{module}.{alias.name}".lstrip(".")
            self.modules[alias.asname or alias.name] = "" if whole == "pytorch" else whole
            self._add(find_row("name", alias.name, module) or _module_row(whole), node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self._path(node)
        is_trainer = self._is_trainer(node.value) or path == f"Trainer.{node.attr}"
        module, _, name = (path or "").rpartition(".")
        found = bool(path) and self._add(find_row("name", name, module) or _module_row(path or ""), node)
        if not found:
            if is_trainer:
                self._add(find_row("attribute", node.attr, "Trainer"), node)
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        path = self._path(node.func)
        called = path.rpartition(".")[2] if path else ""
        if isinstance(node.func, ast.Attribute) and self._is_trainer(node.func.value):
            called = f"Trainer.{node.func.attr}"
        elif isinstance(node.func, ast.Attribute) and _last(node.func.value) == "self":
            called = f"LightningModule.{node.func.attr}"
        for keyword in node.keywords:
            if keyword.arg is not None:
                self._add(find_row("argument", keyword.arg, called), keyword.value)
                value = getattr(keyword.value, "value", None)
                if called == "Trainer" and isinstance(value, str):
                    self._add(find_row("value", value, keyword.arg), keyword.value)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(_last(base) in _BASES or self._path(base) is not None for base in node.bases):
            for function in node.body:
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    if function.name not in self.used:  # otherwise, the program calls it
                        self._add(find_row("hook", function.name), function)
                    rows = (find_row("hook argument", argument.arg, function.name) for argument in function.args.args)
                    self._add(next(filter(None, rows), None), function)
        self.generic_visit(node)

    def _is_trainer(self, node: ast.AST) -> bool:
        made = isinstance(node, ast.Call) and self._path(node.func) == "Trainer"
        return made or _last(node) == "trainer"

    def _path(self, node: ast.AST) -> Optional[str]:
        """Return the path in Lightning that an expression names: ``loggers.base`` for ``pl.loggers.base``."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) <= _MOST_NAMES:
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.modules:
            return None
        if node.id == "lightning" and parts[:1] == ["pytorch"]:
            parts = parts[1:]
        return ".".join(filter(None, [self.modules[node.id], *parts]))


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
