"""Split the text of a log into the lines that the program wrote, each with its number and the prefix of its rank.

Removes escape sequences, the formats that :mod:`unwrap` knows, and the prefixes of launchers and schedulers. The
returned lines are at most 4 KB long and have no control characters, so that later steps need not check this.
"""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

from lightning_patches.cli.diagnose import unwrap

LONGEST = 4096
"""Longest line, in characters. A longer line is split."""
MOST_PIECES = 64
"""Most parts of a split line that are read."""
BEGIN = unwrap.BEGIN

_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_BREAK = re.compile(r"<br {0,8}/?>|</?pre\b[^>]{0,200}>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{2,4}|#x[0-9a-fA-F]{2,4});")
_LINK = re.compile(r"\[([^\[\]\n]{1,500})\]\([a-z][\w+.-]{1,30}:[^)\s]{0,1000}\)")
_PREFIX = re.compile(
    r"""\s{0,16}(?:
        \[(?:default|rank|)\s?\d{1,6}\]:?                     # [rank0]:  torch; [default0]: torchrun's tee
      | \[\d{1,6},\d{1,6}\]<std(?:err|out)>:?                 # mpirun --tag-output
      | \([\w:.<>-]{0,80}\s?(?:pid|rank)=[^()]{0,200}\)       # (RayTrainWorker pid=12, ip=10.0.0.1)
      | \d{1,5}:\s                                            # srun --label
      | (?:FAILED|ERROR)\s[^\s:]{1,300}::\S{1,300}\s-\s        # pytest's summary
      | \d\d[EO][+\s]                                         # GitLab
      | [\w-]{1,60}-\d{1,6}\s{1,40}\|                         # docker compose
      | \[?\d{4}-\d\d-\d\d[T\s]\d\d:\d\d:\d\d[.,\d]{0,12}(?:Z|[+-]\d\d:?\d\d)?\]?
      | \[?(?:INFO|WARNING|WARN|ERROR|CRITICAL|DEBUG)\]?[:\s]
      | [EWIF]\d{4}\s\d\d:\d\d:\d\d\.\d{1,9}\s[^\]\s]{0,20}\s?[^\]\s]{1,200}\]  # glog, as torch.distributed.elastic
      | std(?:err|out)\s[FP]\s                                # Kubernetes
      | [│┃|║]
    )\s?""",
    re.VERBOSE,
)
_RANK = re.compile(
    r"\[(?:default|rank|)\s?\d{1,6}\]|\[\d{1,6},\d{1,6}\]|\([^()=]{0,80}(?:pid|rank)=[^()]{0,200}\)|\s{0,8}\d{1,5}:\s"
    r"|[\w-]{1,60}-\d{1,6}\s{1,40}\|"
)


class Line(NamedTuple):
    """One line of a log.

    Args:
        number: number of the line in the file, from 1.
        text: the line without prefixes.
        rank: the prefix that names the rank, or "".
        raw: the line with prefixes.
        group: number of the exception group that contains the line; 0 for none.
    """

    number: int
    text: str
    rank: str = ""
    raw: str = ""
    group: int = 0


def from_text(text: str, numbers: Optional[Sequence[int]] = None) -> list[Line]:
    """Return the lines of a text. For an excerpt, ``numbers`` are the numbers of its lines in the file."""
    found: deque[Line] = deque(maxlen=unwrap.MAX_LINES)
    for number, whole in unwrap.unwrapped(text, numbers):
        for part in _shown(whole):
            for at in range(0, min(len(part), LONGEST * MOST_PIECES) or 1, LONGEST):
                piece = part[at : at + LONGEST]
                rank = _RANK.match(piece)
                found.append(Line(number, _without_prefixes(piece), rank.group() if rank else "", piece))
    return _unwrapped(_without_own_prefix(list(found)))


def clean(text: str) -> str:
    """Remove escape sequences, and then all other control characters, including those inside of sequences."""
    return _CONTROL.sub("", _ANSI.sub("", text)) if not text.isprintable() else text


def _shown(line: str) -> Iterator[str]:
    """Yield the parts of a line that a terminal shows one after the other in the same place, such as progress bars."""
    if "<" in line and ">" in line:
        line = _BREAK.sub("\r", line)
    for part in line.rstrip("\r").split("\r"):
        part = clean(part)
        part = _ENTITY.sub(lambda entity: html.unescape(entity.group()), part) if "&" in part else part
        yield _LINK.sub(r"\1", part) if "](" in part else part


def _without_prefixes(line: str) -> str:
    for _ in range(6):
        prefix = _PREFIX.match(line)
        if prefix is None or not prefix.group().strip():
            break
        line = line[prefix.end() :]
    return line


_TIME = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")
_ERROR_START = re.compile(rf"{re.escape(BEGIN)}|={{5,}} (?:FAILURES|ERRORS) =")


def _without_own_prefix(found: list[Line]) -> list[Line]:
    """Remove the prefix of a traceback's first line from all lines that begin with it, or with other digits in it."""
    begun = next((match for match in (_ERROR_START.search(one.text) for one in found) if match is not None), None)
    prefix = begun.string[: begun.start()] if begun is not None else ""
    if re.fullmatch(r"\s+[\w.]{1,200}\s{2,}", prefix):  # IPython writes the error's name first
        prefix = prefix[: len(prefix) - len(prefix.lstrip())]
    if not prefix or len(prefix) > 200 or (prefix.strip() and not re.search(r"[\])>|:-] ?$|\t", prefix)):
        return found
    if not prefix.strip():
        return [one._replace(text=one.text[len(prefix) :]) if one.text.startswith(prefix) else one for one in found]
    if set(prefix) <= set("- ─╭"):
        return found
    shape = re.compile(re.sub(r"(?:\\?\d)+", lambda _: r"\\d{1,20}", re.escape(prefix)).replace(r"\\d", r"\d"))
    taken = []
    for one in found:
        match = shape.match(one.text) or shape.match(one.text + " ")
        taken.append(
            one
            if match is None
            else one._replace(text=one.text[match.end() :], rank=one.rank or _TIME.sub("", match.group()))
        )
    alike = {one.rank for one in taken}
    return taken if len(alike) <= 64 else [one._replace(rank="") for one in taken]


_WHOLE_FRAME = re.compile(r'\s{0,16}File "[^"]{1,1000}", line \d')
_PATH_ALONE = re.compile(r"[~/\w.-][^\s:\"',()]{30,}$")


def _unwrapped(found: list[Line]) -> list[Line]:
    """Join lines that a terminal of fixed width has wrapped."""
    plain = [one for one in found if not re.search("[─-╿]", one.text)]
    width = max((len(one.raw) for one in plain), default=0)
    broken = [
        one
        for one in plain
        if len(one.raw) == width
        and ('File "' in one.text and not _WHOLE_FRAME.match(one.text) or _PATH_ALONE.match(one.text))
    ]
    if not 40 <= width <= 400 or not broken:
        return found
    joined: list[Line] = []
    is_open = False
    for one in found:
        if is_open and joined and len(joined[-1].text) < LONGEST:
            joined[-1] = joined[-1]._replace(text=joined[-1].text + one.text)
        else:
            joined.append(one)
        is_open = len(one.raw) == width
    return joined
