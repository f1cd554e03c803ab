"""Every text that the package can print, from its source: warnings, errors, findings, verdicts, help and records."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.unit.fakes import ROOT

PACKAGE = ROOT / "lightning_patches"
WARNINGS = {"notice", "notice_once", "say", "warn_once", "report_misuse", "warn", "print_line", "print_and_write"}
"""Functions that print a message, and methods that issue a warning."""


class Message(NamedTuple):
    """One text.

    Args:
        place: file and line.
        kind: ``"warning"``, ``"error"`` or ``"text"``.
        text: the text; ``{}`` is a value.
    """

    place: str
    kind: str
    text: str


def render(node: ast.AST) -> str:
    """Return the text of an expression with ``{}`` for values; "" if it is not a string."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(render(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = render(node.left), render(node.right)
        return f"{left or '{}'}{right or '{}'}" if left or right else ""
    return ""


def _is_prose(text: str) -> bool:
    """True for four words and more that are not code."""
    words = re.findall(r"(?<![\w.])[A-Za-z]{2,}(?![\w(=.])", text)
    return len(words) >= 4 and not re.search(r"^\s*(import|from|def|class) |\\[bdsw]|\(\?", text, re.M)


def _in(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    kinds: dict[int, str] = {}
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            kinds.update((id(value), "error") for value in node.exc.args)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            kinds.update((id(value), "warning") for value in node.args if name in WARNINGS)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))  # a docstring
        if id(node) in skipped:
            continue
        text = render(node)
        if text:
            skipped.update(map(id, ast.walk(node)))  # its parts are not separate texts
            if id(node) in kinds or _is_prose(text):
                yield node.lineno, kinds.get(id(node), "text"), text  # type: ignore[attr-defined]


def messages() -> list[Message]:
    """Return every text of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "_index.py":  # generated from the records
            place = path.relative_to(PACKAGE).as_posix()
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [Message(f"{place}:{line}", kind, text) for line, kind, text in _in(tree)]
    return found
