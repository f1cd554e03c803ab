"""Find the advice in an error's message."""

from __future__ import annotations

import re

from lightning_patches.notices import printable

MOST = 600
"""Most characters of the advice."""
_SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][`'\")]))\s+(?=[A-Z`'\"(])")
_HINT = re.compile(r"\b(?:HINT|Hint|hint): *")
_ADVISES = re.compile(
    r"(?:\d\. |\(\d\) ?|- )?(?:Please|Try|Consider|Use|Set|Pass|Make sure|Ensure|Increase|Decrease|Reduce|Run|Install|"
    r"Remove|Add|Disable|Enable|Check|Switch|Call|Move|Either|Upgrade|Instead|Did you)\b"
    r"|.{0,200}?\b(?:you (?:must|should|can|could|may|need|have to|might|want to)|please (?:use|set|try|run|pass|make|"
    r"call|install|upgrade|check)|must be|should be|can be (?:set|disabled|enabled)|Consider)\b"
)
_NO_ADVICE = re.compile(
    r"(?i:open an issue|file an issue|submit a bug|report (?:it|this|a bug)|contact|see the documentation)"
)


def in_message(text: str) -> str:
    """Return the sentences of a message that say what to do, or ""."""
    text = " ".join(re.sub(r"^[\w.]{1,200}: ", "", text).split())
    found = [sentence for sentence in _SENTENCE_END.split(_HINT.sub("HINT: ", text)) if _is_advice(sentence)]
    advice = " ".join(_HINT.sub("", sentence) for sentence in found)
    return advice if len(advice) <= MOST else ""


def first(advice: str, do: str) -> str:
    """Return the advice of a message, before our own if there is any."""
    own = f" If that does not help: {do}" if do else ""
    return f"As the message says: {printable(advice.rstrip())}{'' if advice[-1] in '.!?' else '.'}{own}"


def _is_advice(sentence: str) -> bool:
    return bool(_HINT.search(sentence) or _ADVISES.match(sentence)) and not _NO_ADVICE.search(sentence)
