"""Texts that the package can print follow the rules for messages."""

from __future__ import annotations

import re

import pytest

from tests.unit.messages import Message, messages

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
