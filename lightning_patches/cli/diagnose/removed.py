"""What of Lightning 1.x a log or a script asks for, and 2.x does not have: errors and code, looked up in the table."""

from __future__ import annotations

import ast
import re
from typing import Callable, Iterator, Optional

from lightning_patches.cli.diagnose.log import Raised, Text
from lightning_patches.removed import Removed, find

ROOT = r"(?:pytorch_lightning|lightning\.pytorch|lightning)"
SYMPTOMS = (
    "cannot import name '",
    "No module named 'pytorch_lightning.",
    "No module named 'lightning.",
    "got an unexpected keyword argument '",
    "has no attribute '",
    "required positional argument: '",
    "required positional arguments: '",
    "has been removed in v2.0.0.",
    "You selected an invalid strategy name: `",
    "You selected an invalid accelerator name: `",
    "Training with multiple optimizers is only supported with manual optimization",
)
"""By which the errors are found in a large log."""

_BASES = ("LightningModule", "LightningDataModule", "Callback")
_ENTRY = re.compile(r"^(?:pytorch_lightning|lightning\.pytorch|lightning)(?:\.|$)")


def in_errors(text: Text) -> Iterator[tuple[Removed, Raised]]:
    """The rows that the errors of a log are about, with the error. An error that tells less than which it is, is
    passed over: most programs have a class without an attribute."""
    for error in text.raised:
        words = " ".join(line.strip() for line in text.lines[error.message : error.last + 1])
        for pattern, look in _ERRORS:
            match = re.search(pattern, words)
            row = look(match, error, text) if match else None
            if row is not None:
                yield row, error
                break


def _module(match: re.Match[str], error: Raised, text: Text) -> Optional[Removed]:
    return _module_row(match[1])


def _module_row(name: str) -> Optional[Removed]:
    """The row of a module, or of a package that it was in."""
    while name:
        row = find("module", name)
        if row is not None:
            return row
        name = name.rpartition(".")[0]
    return None


def _name(match: re.Match[str], error: Raised, text: Text) -> Optional[Removed]:
    return _name_row(match["module"] or "", match["name"])


def _name_row(module: str, name: str) -> Optional[Removed]:
    module = module.lstrip(".")
    within = find("name", name, module) or find("module", f"{module}.{name}".lstrip("."))
    return within or _module_row(module) or find("name", name)


def _argument(match: re.Match[str], error: Raised, text: Text) -> Optional[Removed]:
    owner, function, name = match["owner"], match["function"], match["name"]
    if owner is None and function == "__init__":  # below Python 3.10 it does not say of which class
        is_trainer = any("insert_env_defaults" in frame.function for frame in error.frames)
        return find("argument", name, "Trainer") if is_trainer else None
    called = f"{owner or 'Trainer'}.{function}" if function != "__init__" else owner
    return find("argument", name, called)


def _attribute(match: re.Match[str], error: Raised, text: Text) -> Optional[Removed]:
    owner, name = match["owner"], match["name"]
    if "transformers" in text.searched:
        return None  # whose Trainer is another one
    row = find("attribute", name, owner)
    if row is None and "_" in name and owner != "Trainer":  # a class of the program's own
        row = find("attribute", name, "LightningModule") or find("attribute", name, "LightningDataModule")
    return row


def _removed_hook(match: re.Match[str], error: Raised, text: Text) -> Optional[Removed]:
    return find("hook", match[1])


def _value(match: re.Match[str], error: Raised, text: Text) -> Optional[Removed]:
    return find("value", match["name"], match["owner"])


def _missing(match: re.Match[str], error: Raised, text: Text) -> Optional[Removed]:
    hook = match["hook"]
    named = re.findall(r"'(\w+)'", match["names"])
    if (hook, *named) in _ONE_FURTHER:
        named = ["optimizer_idx"]
    return next((row for row in (find("hook argument", name, hook) for name in named) if row), None)


_ONE_FURTHER = (("optimizer_step", "optimizer_closure"), ("lr_scheduler_step", "metric"))
"""What is missing where a hook has ``optimizer_idx`` in the middle, and gets the next argument for it."""


def _several_optimizers(match: re.Match[str], error: Raised, text: Text) -> Optional[Removed]:
    return find("hook argument", "optimizer_idx", "training_step")


_ERRORS: tuple[tuple[str, Callable[[re.Match[str], Raised, Text], Optional[Removed]]], ...] = (
    (rf"No module named '{ROOT}\.([\w.]+)'", _module),
    (rf"cannot import name '(?P<name>\w+)' from '{ROOT}(?P<module>[\w.]*)'", _name),
    (rf"module '{ROOT}(?P<module>[\w.]*)' has no attribute '(?P<name>\w+)'", _name),
    (r"(?:(?P<owner>\w+)\.)?(?P<function>\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)'", _argument),
    (r"(?:type object )?'(?P<owner>\w+)'(?: object)? has no attribute '(?P<name>\w+)'", _attribute),
    (r"Support for .(\w+). has been removed in v2", _removed_hook),
    (r"invalid (?:strategy|accelerator) name: .(?P<owner>\w+)='(?P<name>\w+)'", _value),
    (r"\b(?P<hook>\w+)\(\) missing \d+ required positional arguments?: (?P<names>.*)", _missing),
    (r"Training with multiple optimizers is only supported with manual optimization", _several_optimizers),
)


def in_script(source: str) -> list[tuple[Removed, int]]:
    """The rows that a script's code asks for, with the line, from 1; none of a script without Lightning or one that
    is no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    script = _Script(tree)
    return sorted(script.found, key=lambda one: one[1]) if script.has_lightning else []


class _Script(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        self.found: list[tuple[Removed, int]] = []
        self.has_lightning = False
        self.modules: dict[str, str] = {}
        """The script's names for modules and names of Lightning: ``{"pl": "", "Trainer": "Trainer"}``."""
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
            self._add(find("name", alias.name, module) or _module_row(whole), node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self._path(node)
        is_trainer = self._is_trainer(node.value) or path == f"Trainer.{node.attr}"
        module, _, name = (path or "").rpartition(".")
        found = bool(path) and self._add(find("name", name, module) or _module_row(path or ""), node)
        if not found:
            if is_trainer:
                self._add(find("attribute", node.attr, "Trainer"), node)
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
                self._add(find("argument", keyword.arg, called), keyword.value)
                value = getattr(keyword.value, "value", None)
                if called == "Trainer" and isinstance(value, str):
                    self._add(find("value", value, keyword.arg), keyword.value)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(_last(base) in _BASES or self._path(base) is not None for base in node.bases):
            for function in node.body:
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    if function.name not in self.used:  # else the program itself calls it
                        self._add(find("hook", function.name), function)
                    rows = (find("hook argument", argument.arg, function.name) for argument in function.args.args)
                    self._add(next(filter(None, rows), None), function)
        self.generic_visit(node)

    def _is_trainer(self, node: ast.AST) -> bool:
        made = isinstance(node, ast.Call) and self._path(node.func) == "Trainer"
        return made or _last(node) == "trainer"

    def _path(self, node: ast.AST) -> Optional[str]:
        """The place in Lightning of what an expression names: ``pl.loggers.base`` is ``loggers.base``."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.modules:
            return None
        if node.id == "lightning" and parts[:1] == ["pytorch"]:
            parts = parts[1:]
        return ".".join(filter(None, [self.modules[node.id], *parts]))


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
