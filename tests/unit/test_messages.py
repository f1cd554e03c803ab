"""Every text that the package can print, from its source, follows the rules for messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

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


MESSAGES = messages()
AVOIDED = {
    "mend": r"\bmend(s|ed|ing)?\b",
    "whoever, nobody, somebody": r"\b(whoever|whichever|nobody|somebody)\b",
    "of ours": r"\bof (ours|theirs|its own|their own|upstream's)\b",
    "is said, is told, is asked": r"\b(is|are|was|were|be|been) (said|told|asked|believed|heard|given away)\b",
    "stands": r"\bstands? (in|there|still|at|above|below|beside|between)\b",
    "goes on, lets be": r"\b(steps? aside|lets? (it|them|that|this) be|comes? of|goes on|go on)\b",
    "there is none, as before": r"\b(there is none|as before|nor (is|does|has|are|do)|which there (is|are) not)\b",
    "is to be": r"\b(is|are|was|were) to (be|have|come)\b|\bwere it\b",
    "is no": r"(?<!here )\bis no (?!longer)\w+",
    "a what-clause": r"^(Whether|That which|Who) ",
    "the user": r"\bthe user\b",
    "two spaces": r"[a-z,.;]  +[a-zA-Z]",
    "space before punctuation": r"[a-z}] [,;](\s|$)",
    "a word twice": r"\b(a|an|the|is|are|to|of|in|and|it|that) \1\b",
}


def found(pattern: str) -> list[Message]:
    return [one for one in MESSAGES if re.search(pattern, one.text, re.M)]


@pytest.mark.parametrize("name", AVOIDED)
def test_message_avoids_pattern(name: str) -> None:
    assert found(AVOIDED[name]) == [], f"avoid {name!r}: name the actor, and use an active verb"


def test_message_of_several_sentences_ends_with_a_full_stop() -> None:
    several = r"[a-z)`]\. [A-Z`]"
    ends = re.compile(r"([.!?:)]|\{\}|\.\.\.)\s*$")
    kinds = ("warning", "error")
    assert [one for one in found(several) if one.kind in kinds and not ends.search(one.text)] == []


def test_message_does_not_begin_with_a_label() -> None:
    assert [one for one in found(r"^(Error|Warning|Note|Sorry|Oops|Please)\b") if one.kind != "text"] == []
