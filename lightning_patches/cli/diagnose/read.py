"""Read a log, a script or a description, and find errors and facts in it.

If a log has more than 8 MB, only an excerpt is read.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import lru_cache
from typing import Optional

from lightning_patches.cli import _files, _output
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.diagnose import describe, excerpt, facts, hangs, known, lines, streams, tracebacks
from lightning_patches.cli.diagnose.log import Log

FULL = 8
"""Most logs that are each read up to the full limits. More logs share the limits of this number of logs."""
MAX_PROSE = 600
"""Longest text that may be a user's description, in characters. A longer text is a log."""

_FILE = re.compile(r"\S+\.(?:log|txt|out|err|gz|bz2|xz|zst|py|ipynb|ya?ml|json|xml|html|md|rst)")


def logs(names: list[str]) -> list[Log]:
    """Read the files with these names. If none exists, the names are a description or a traceback.

    Raises:
        UsageError: a file can't be read.
    """
    words = " ".join(names)
    are_files = any(name == "-" or os.path.exists(name) for name in names)
    if not are_files and (lines.BEGIN in words or "\n" in words.strip()):
        return [from_text("", words)]
    if not are_files and _is_description(words):
        return [from_text("", words, is_words=True)]
    share = max(len(names) // FULL, 1)
    return [_log(name, share) for name in names]


def _is_description(words: str) -> bool:
    """True if the arguments are a description, and not names of files."""
    if describe.CHINESE.search(words):
        return True
    if " " in words.strip():
        return not all(_FILE.fullmatch(word) for word in words.split())
    return bool(known_word(words))


def known_word(word: str) -> bool:
    """True if a single word occurs in records, and is not the name of a file."""
    word = word.strip("#`'\"().,:").lower()
    if not re.fullmatch(r"[\w.=-]{3,60}", word) or _FILE.fullmatch(word):
        return False
    return word in _known_words()


@lru_cache(maxsize=None)
def _known_words() -> frozenset[str]:
    from lightning_patches.patches.removed import rows

    found = {row.member.lower() for row in rows()}
    for record in known.records():
        for text in (*record.impact.symptoms, record.title):
            found.update(word for word in re.findall(r"[\w.-]{3,60}", text.lower()) if "_" in word or "." in word[1:-1])
    return frozenset(found | {"libuv", "use_libuv"})


def from_text(name: str, text: str, numbers: Optional[list[int]] = None, is_words: bool = False) -> Log:
    """Find the errors and facts in a text.

    Args:
        name: name of the log; "" for an argument of the command line.
        text: a log, or an excerpt of it.
        numbers: for an excerpt, the numbers of its lines in the file.
        is_words: True for a user's description.
    """
    read = lines.from_text(text, numbers)
    raised = tracebacks.find(read)
    is_words = (is_words or is_prose(text)) and not any(error.frames for error in raised)
    return Log(name, read, raised, facts.find(read, raised), is_words=is_words)


def is_prose(text: str) -> bool:
    """True if a text may be a user's description, and is not a log."""
    if len(text) > MAX_PROSE or not text.strip():
        return False
    signs = [one for one in text if not one.isspace()]
    return sum(map(str.isalpha, signs)) >= 0.8 * len(signs) and not describe.LOGGED.search(text)


def _log(name: str, share: int) -> Log:
    try:
        if os.path.isdir(name):
            found = hangs.in_directory(name)
            if found:
                return Log(name, hangs=found)
        with streams.opened(name) as stream:
            log = from_stream(name, stream, share)
    except OSError as error:
        advice = '. Describe the problem in several words: `lightning-patches diagnose "it is stuck"`'
        hint = advice if isinstance(error, FileNotFoundError) and re.fullmatch(r"[^\W\d_]+", name) else ""
        shown = "standard input" if name == "-" else _output.printable(name) or "''"
        raise UsageError(f"{shown} cannot be read: {error.strerror or error}{hint}") from None
    if not name.endswith(".py") or not os.path.isfile(name):
        return log
    source = _files.read_text(name, _files.MAX_SCRIPT)
    code = [lines.Line(number, text) for number, text in enumerate(source.split("\n"), 1)]
    return replace(log, is_script=True, lines=code)


def from_stream(name: str, stream: streams.Stream, share: int = 1) -> Log:
    """Read a log: all of it, or an excerpt if it is large.

    Args:
        name: name of the log.
        stream: its contents.
        share: number of logs that share the limits.
    """
    reports = hangs.Reports(name)
    max_bytes, max_lines = excerpt.limits(share)
    block = stream.read(max_bytes + 1)
    reports.feed(block)
    if len(block) <= max_bytes and block.count(b"\n") + block.count(b"\r") <= max_lines:
        log = from_text(name, block.decode("utf-8", "replace").replace("\r\n", "\n"))
        left_out: list[str] = []
    else:
        part = excerpt.Excerpt(share)
        while block:
            for at in range(0, len(block), excerpt.BLOCK):
                part.feed(block[at : at + excerpt.BLOCK])
            block = stream.read(excerpt.BLOCK)
            reports.feed(block)
        text, numbers, left_out = part.finish()
        log = from_text(name, text, numbers)
    hang = reports.finish()
    return replace(log, hangs=[hang] if hang is not None else [], left_out=[*left_out, *stream.left_out])
