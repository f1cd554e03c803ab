"""Whether two releases are the same source in all that a run executed: then what was seen of one is true of the other.

Compared are the functions that were executed; of the modules that they stand in, everything but other functions; and of
every other module that was imported, which methods its classes have, since one more could have been called instead.
Docstrings, comments and annotations say nothing, and ``lightning.pytorch`` is the same as ``pytorch_lightning``.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Callable, NamedTuple

from tests.support.executed import ROOTS, Executed

import _releases  # isort: skip  (tests.support.arms has put scripts/ on the path)

_SAME_NAMES = (("pytorch_lightning", "lightning.pytorch"), ("lightning_fabric", "lightning.fabric"))
_WHOLE = "<module>"
_OF_THE_DISTRIBUTION = ("__about__.py", "__version__.py")
"""Where they lie differs between the two distributions, as does the root of ``lightning``, which imports its parts."""


class _Index(NamedTuple):
    """Digests of one file.

    Args:
        functions: by qualified name.
        rest: of the module without the bodies of its functions.
        methods: of the names in the bodies of its classes.
    """

    functions: dict[str, str]
    rest: str
    methods: str


def same(one: tuple[str, str], other: tuple[str, str], executed: Executed) -> bool:
    """Whether two releases, each a distribution and a version, are the same source in all that was executed."""
    return one == other or digest(*one, executed) == digest(*other, executed)


@cache
def digest(distribution: str, version: str, executed: Executed) -> str:
    """Of all in a release that decides what a run that executed these functions does."""
    return _digest(_releases.unpacked(distribution, version), executed, _index_in_release)


def digest_below(directory: Path, executed: Executed) -> str:
    """:func:`digest` of what lies in a directory, like a release."""
    return _digest(directory, executed, _index_of)


def _digest(directory: Path, executed: Executed, index_of: Callable[[Path, str], _Index | None]) -> str:
    by_file: dict[str, set[str]] = {}
    for path, name in executed:
        if path == "__init__.py" or path.endswith(_OF_THE_DISTRIBUTION):
            continue
        by_file.setdefault(path, set()).add(name)
    found = hashlib.sha256()
    for path, names in sorted(by_file.items()):
        index = index_of(directory, path)
        found.update(f"{path}\0".encode())
        if index is None:
            continue
        functions = sorted(names - {_WHOLE})
        found.update((index.rest if functions else index.methods).encode())
        for name in functions:
            found.update(f"{name}\0{index.functions.get(name, 'absent')}".encode())
    return found.hexdigest()[:16]


def _index_of(directory: Path, path: str) -> _Index | None:
    for root, prefix in ROOTS.items():
        file = directory / root / path.removeprefix(prefix)
        if path.startswith(prefix) and file.is_file():
            text = file.read_text(encoding="utf-8")
            for theirs, ours in _SAME_NAMES:
                text = text.replace(theirs, ours)
            return _index(text)
    return None


_index_in_release = cache(_index_of)
"""Releases do not change."""


@cache
def _index(text: str) -> _Index:
    functions: dict[str, str] = {}
    methods: list[str] = []

    def walk(body: list[Any], inside: str) -> list[str]:
        """Note the functions; returns what else there is, each statement as text."""
        rest = []
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions[inside + node.name] = functions.get(inside + node.name, "") + _hash(_dump(node))
                if inside:
                    methods.append(inside + node.name)
            elif isinstance(node, ast.ClassDef):
                outside = [*node.bases, *node.keywords, *node.decorator_list]
                rest.append(f"class {node.name} {[ast.dump(part) for part in outside]}")
                rest += walk(node.body, f"{inside}{node.name}.")
            elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                rest += [type(node).__name__, *(ast.dump(part) for part in [getattr(node, "test", None)] if part)]
                for part in ("body", "handlers", "orelse", "finalbody"):
                    rest += walk(getattr(node, part, []), inside)
            elif not _is_text(node):
                rest.append(_dump(node))
        return rest

    tree = _WithoutAnnotations().visit(ast.parse(text))
    everything = walk(tree.body, "")
    return _Index(functions, _hash("\n".join([*everything, *sorted(methods)])), _hash("\n".join(sorted(methods))))


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> Any:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node.orelse
        return self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        return None if node.module in ("typing", "typing_extensions", "__future__") else node

    def visit_FunctionDef(self, node: Any) -> Any:
        node.returns = None
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return ast.Assign([node.target], node.value) if node.value is not None else None


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _dump(node: ast.stmt) -> str:
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            inner.body = body[1:]  # type: ignore[attr-defined]
    return ast.dump(node)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
