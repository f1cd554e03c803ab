"""The plain words of ``LIGHTNING_PATCHES``, which are understood without the catalogue.

Every Python that is armed loads this at its start, so nothing is imported here.
"""

VARIABLE = "LIGHTNING_PATCHES"
DEFAULT_WORDS = frozenset({"1", "on", "true", "yes", "default"})
NOTHING_WORDS = frozenset({"0", "off", "false", "no", "none"})
FLAG_WORDS = frozenset({"strict", "quiet"})
ALL_WORD = "all"
SAME_RESULTS_WORD = "same-results"
EXACT_RESUME_WORD = "exact-resume"


def split(text: str) -> "list[str]":
    """The items of a toggle, in lower case. Our own tables write ``PR #21068``, which is one item."""
    return text.replace(",", " ").lower().replace("pr #", "pr").replace("pr ", "pr").split()


def asks_for_patches(text: "str | None") -> bool:
    """True if a value of the variable requests patches: not unset, not blank, and not a word for "nothing".

    An explicit import without a word applies the default set; see :func:`lightning_patches.engine.toggle.parse`.
    """
    items = split(text or "")
    return bool(items) and not (len(items) == 1 and items[0] in NOTHING_WORDS)


def are_plain(text: str) -> bool:
    """True if all items can be parsed without the catalogue."""
    return DEFAULT_WORDS | NOTHING_WORDS | FLAG_WORDS | {ALL_WORD, SAME_RESULTS_WORD, EXACT_RESUME_WORD} >= set(
        split(text)
    )
