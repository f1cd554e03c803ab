"""What of a file takes part in a proof: what it does, not what it says.

A corrected sentence must not void hours of runs; a changed line of code must.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

SAID_OF_A_PATCH = {
    *("title", "impact", "note", "further_than_upstream", "equivalent_to"),
    *("relied_on", "relied_on_tests", "added", "changes_results"),
}
"""What a patch's record tells people; see :class:`lightning_patches.patch.Patch`."""


@cache
def content(path: Path) -> bytes:
    """Of Python code the syntax tree, without comments, docstrings and the texts of records; of other files all."""
    if path.suffix != ".py":
        return path.read_bytes()
    return _dumped(ast.parse(path.read_bytes()).body)


@cache
def relied_on(path: Path, name: str) -> bytes:
    """Of a module, what defines ``name`` and all that it relies on there, as :func:`content` gives it."""
    statements = ast.parse(path.read_bytes()).body
    bound = [_bound(statement) for statement in statements]
    wanted, reached = {name}, set[int]()
    while True:
        found = {index for index, names in enumerate(bound) if names & wanted} - reached
        if not found:
            return _dumped([statements[index] for index in sorted(reached)])
        reached |= found
        for index in found:
            wanted |= {node.id for node in ast.walk(statements[index]) if isinstance(node, ast.Name)}


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module gives a meaning to."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Store) or isinstance(statement, ast.Expr)):
            names.add(node.id)
    return names


class _WithoutTexts(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "Patch":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in SAID_OF_A_PATCH]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        self.generic_visit(node)
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None  # a docstring, or one below an attribute
        return node


def _dumped(statements: list[ast.stmt]) -> bytes:
    return ast.dump(_WithoutTexts().visit(ast.Module(statements, []))).encode()
