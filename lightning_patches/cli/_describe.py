"""Compares what somebody says in words with the symptoms of the known bugs: most silent bugs have no message."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

MIN_SCORE = 0.45
"""Share of a description's weight that a bug has to account for."""
MAX_FOUND = 3

Key = TypeVar("Key")

_FILLERS = re.compile(
    r"""a|an|and|are|as|at|be|been|but|by|did|do|does|for|from|had|has|have|i|if|in|is|it|its|me|my|no|not|of|on|one|only|
    or|our|s|so|t|than|that|the|their|them|then|there|they|this|to|too|us|was|we|were|what|when|which|while|why|will|with|
    without|you|your|very|just|every""",
    re.VERBOSE,
)
_SAME = {
    "0": "first", "1st": "first", "zero": "first",
    "vanish": "delet", "disappear": "delet", "gone": "delet", "lost": "delet", "remov": "delet", "miss": "delet",
    "lr": "rate", "learn": "rate", "shorten": "short", "cut": "short",
    "found": "find", "suggest": "find", "finder": "find", "tuner": "find", "lr_find": "find",
    "continu": "resum", "restart": "resum", "reload": "resum",
    "ckpt": "checkpoint", "save": "checkpoint", "gpu": "rank", "process": "rank", "device": "rank",
    "diverg": "differ", "unequal": "differ", "disagree": "differ", "unsync": "differ",
    "freez": "hang", "stuck": "hang", "stall": "hang", "stand": "hang", "deadlock": "hang",
    "grad": "gradient", "sync": "synchron", "val": "validat", "eval": "validat",
    "slower": "slow", "augment": "random", "acc": "accumulat",
    "second": "next", "again": "next", "twice": "next",
}  # fmt: skip
"""What people say, and the word of the symptoms for it; both without endings."""
_ENDINGS = re.compile(r"(?:ations?|ations|ing|ions?|ies|ed|es|e|s|er)$")


def words(text: str) -> list[str]:
    """The words that tell something, without their endings, and one for those that say the same."""
    found = []
    for word in re.findall(r"[a-z0-9_]+", text.lower()):
        if not _FILLERS.fullmatch(word):
            stem = _ENDINGS.sub("", word) if len(word) > 4 else word.rstrip("s") or word
            found.append(_SAME.get(word, _SAME.get(stem, stem)))
    return found


def compare(description: str, known: Sequence[tuple[Key, Iterable[str]]]) -> list[Key]:
    """The bugs that a description may be about, the closest first.

    The fewer bugs have a word, the more it weighs. How much of the description's weight a bug accounts for decides;
    a single common word never does.

    Args:
        description: some words.
        known: for each bug, what identifies it and the texts that speak of it, the symptoms first.
    """
    texts = [(key, [set(words(text)) for text in spoken]) for key, spoken in known]
    spread = Counter(word for _, sets in texts for word in set().union(*sets))
    asked = set(words(description))
    weight = {word: math.log(1 + len(texts) / spread[word]) if spread[word] else 1.0 for word in asked}
    total = sum(weight.values())
    if len(asked) < 2:
        return []
    scored = []
    for index, (key, sets) in enumerate(texts):
        every = sum(weight[word] for word in asked & set().union(*sets))
        # All of it in one symptom says more than here and there in the record.
        closest = max((2 * sum(weight[word] for word in asked & one) / (total + len(one)) for one in sets), default=0.0)
        share = (every / total + closest) / 2
        if share >= MIN_SCORE and len(asked & set().union(*sets)) > 1:
            scored.append((-share, index, key))
    best = sorted(scored, key=lambda item: item[:2])[:MAX_FOUND]
    return [key for share, _, key in best if share <= 0.8 * best[0][0]]
