"""Logs: read at the speed of the disk, and taken apart into the errors that they tell of.

A log may hold gigabytes of progress bars and one traceback. So one compiled pass over the bytes looks for anchors, a
rare piece of a word of each symptom, and only what stands around an anchor whose symptom is really there is read.
"""

from __future__ import annotations

import bisect
import gzip
import io
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Callable, Optional, cast

BLOCK = 4 * 1024 * 1024
"""Bytes that are looked through at once."""
BEFORE, AFTER = 64 * 1024, 8 * 1024
"""Bytes around an anchor that are read: a traceback stands before its message."""
AROUND = 400
"""Bytes around an anchor that are compared with a symptom."""
MAX_READ = 8 * 1024 * 1024
"""Bytes of a log that are read closely, from its beginning: the first error is the one that matters."""
MAX_PLACES = 20
"""Places of one symptom that are read closely."""
MAX_SHAPES = 500_000
"""Different lines that are remembered."""
MAX_GAP = 300
"""Characters that ``...`` in a symptom may stand for."""
MAX_MESSAGE = 12
"""Lines of an error's message."""

_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_PREFIX = re.compile(
    r"""\s*(?:
        \[(?:default|rank|)\s?\d+\]:?              # [rank0]:  torch; [default0]: torchrun's tee
      | \[\d+,\d+\]<std(?:err|out)>:?              # mpirun --tag-output
      | \([\w:.<>-]*\s?(?:pid|rank)=[^)]*\)        # (RayTrainWorker pid=12, ip=10.0.0.1)
      | \d{1,5}:\s                                 # srun --label
      | \w+-\d+\s+\|                               # docker compose
      | \[?\d{4}-\d\d-\d\d[T\s]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\]?
      | \[?(?:INFO|WARNING|WARN|ERROR|CRITICAL|DEBUG)\]?[:\s]
      | [│┃|║]
    )\s?""",
    re.VERBOSE,
)
_RANK = re.compile(r"\[(?:default|rank|)\s?\d+\]|\[\d+,\d+\]|\([^)]*(?:pid|rank)=[^)]*\)|\s*\d{1,5}:\s|\w+-\d+\s+\|")
_BOX = re.compile(r"[─-╿❱]+")
_QUOTES = str.maketrans('‘’´`"“”', "'" * 7)
_VARYING = (
    (re.compile(r"\b(cuda|xpu|mps|npu|hpu):\d+"), r"\1:n"),
    (re.compile(r"0x[0-9a-f]+"), "0xn"),
    (re.compile(r"\bline \d+\b"), "line n"),
)
_FRAME = re.compile(
    r'File "(?P<file>[^"\n]+)", line \d+(?:, in (?P<name>\S+))?|(?P<path>/[^\s:]+\.py):\d+ in (?P<in>\w+)'
)
_BEGIN = "Traceback (most recent call last)"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_ERROR = re.compile(
    r"^\s*((?:[\w<>]+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning|Failure|Timeout)\b.*|\w+(?:\.\w+)+: .*)"
)


@dataclass
class Raised:
    """An error in a log.

    Args:
        first, last: indices of its lines, from the traceback's first one to the last one of its message.
        message: index of the line on which its message begins; ``first`` where there is no traceback.
        words: that line.
        frames: ``"path in function"`` for each frame of the traceback.
        before: the error in whose handling it was raised, or that it names as its cause.
    """

    first: int
    last: int
    message: int
    words: str
    frames: tuple[str, ...] = ()
    before: Optional[Raised] = None

    @property
    def root(self) -> Raised:
        """The first error of the chain, which the others followed."""
        return self if self.before is None else self.before.root


@dataclass
class Text:
    """What was read of a log, ready to be searched.

    Args:
        lines: the lines, without what launchers put in front.
        numbers: each line's number in the log, from 1.
        searched: all lines without what varies, in one.
        starts: where each line starts in ``searched``.
        raised: the errors, in their order.
    """

    lines: list[str]
    numbers: list[int]
    searched: str = ""
    starts: list[int] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        """The files of all frames."""
        return [frame.partition(" in ")[0] for error in self.raised for frame in error.frames]

    def line_at(self, position: int) -> int:
        """Index of the line at a position of ``searched``."""
        return bisect.bisect_right(self.starts, position) - 1

    def error_at(self, line: int) -> Optional[Raised]:
        """The error that a line belongs to."""
        return next((error for error in self.raised if error.first <= line <= error.last), None)


def normalised(text: str) -> str:
    """Without case, boxes, kinds of quotes, numbers of devices and lines, and white space."""
    text = _BOX.sub(" ", text).translate(_QUOTES).lower()
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def pattern_of(symptom: str) -> str:
    """The regular expression that finds a symptom in normalised text; "" for an empty one."""
    wanted = normalised(symptom)
    escaped = list(map(re.escape, pieces(symptom)))
    if not escaped:
        return ""
    begin = r"(?<!\w)" if wanted[0].isalnum() else ""
    end = r"(?![\w.]*\w)" if wanted[-1].isalnum() else ""
    return begin + rf".{{0,{MAX_GAP}}}?".join(escaped) + end


def pieces(symptom: str) -> list[str]:
    """A symptom in normalised text, without its gaps."""
    return [piece.strip() for piece in re.split(r"\.\.\.|…", normalised(symptom)) if piece.strip()]


def prepare(text: str, numbers: Optional[Sequence[int]] = None) -> Text:
    """Take a text apart. ``numbers`` are those of its lines, if it is not the whole log."""
    originals = _ANSI.sub("", text).replace("\r\n", "\n").split("\n")
    taken = Text([], [])
    ranks: dict[str, list[int]] = {}
    for index, original in enumerate(originals):
        for line in original.split("\r"):  # a progress bar writes over itself
            ranks.setdefault(_rank_of(line), []).append(len(taken.lines))
            taken.lines.append(_without_prefixes(line))
            taken.numbers.append(numbers[index] if numbers else index + 1)
    parts = []
    position = 0
    for line in taken.lines:
        taken.starts.append(position)
        part = normalised(line)
        if part:
            parts.append(part)
            position += len(part) + 1
    taken.searched = " ".join(parts)
    for indices in ranks.values():  # the lines of several ranks are mixed up
        taken.raised += _errors(taken.lines, indices)
    taken.raised.sort(key=lambda error: error.first)
    return taken


def _rank_of(line: str) -> str:
    found = _RANK.match(line)
    return found.group() if found else ""


def _without_prefixes(line: str) -> str:
    while True:
        prefix = _PREFIX.match(line)
        if prefix is None or not prefix.group().strip():
            return line
        line = line[prefix.end() :]


def _errors(lines: list[str], indices: list[int]) -> Iterator[Raised]:
    """The errors in the lines of one rank."""
    chained: Optional[Raised] = None
    last: Optional[Raised] = None
    at = 0
    while at < len(indices):
        line = lines[indices[at]]
        if _BEGIN not in line and not _FRAME.search(line):
            chained = last if last is not None and any(words in line for words in _CHAINED) else chained
            at += 1
            continue
        begin, frames = at, []
        at += _BEGIN in line  # otherwise somebody has cut off the traceback's begin
        message = None
        while at < len(indices) and message is None:
            line = lines[indices[at]]
            frame = _FRAME.search(line)
            if frame:
                frames.append(f"{frame['file'] or frame['path']} in {frame['name'] or frame['in'] or ''}")
            elif _BEGIN in line or any(words in line for words in _CHAINED):
                break
            elif frames and _ERROR.match(_BOX.sub(" ", line)) and not line.startswith("    "):
                message = at
            at += 1
        end = at
        if message is None:
            end, message = at, at - 1
        while end < len(indices) and end - message < MAX_MESSAGE:
            line = lines[indices[end]]
            if not line.strip() or any(words in line for words in (_BEGIN, *_CHAINED)):
                break
            end += 1
        at = max(at, end)
        words = " ".join(_BOX.sub(" ", lines[indices[message]]).split())
        last = Raised(indices[begin], indices[end - 1], indices[message], words, tuple(frames), chained)
        chained = None
        yield last


# ---------------------------------------------------------------- large logs


class Anchors:
    """All symptoms, for a search through bytes.

    The anchor of a symptom begins with the rarest letter that one of its words has: Python's ``re`` skips over every
    character that begins no anchor, and this is what the speed depends on.
    """

    _RARE = "jqzxkvwbyg_fpmuhldcrsniaote"
    _ENOUGH = 8
    """Letters of an anchor and what follows it that tell a symptom from everything else."""
    _BETWEEN = rb"(?:\x1b\[[\d;?]*[a-z]|[^\w\r\n])*"
    """What may stand between two words of a line: boxes, quotes and colours as well."""

    def __init__(self, symptoms: Iterable[str]) -> None:
        self.symptoms: dict[bytes, list[tuple[list[bytes], re.Pattern[str]]]] = {}
        tree: dict[int, set[bytes]] = {}
        for symptom in symptoms:
            anchor, following = self.anchor(symptom)
            if anchor:
                words = [word.encode() for word in re.findall(r"[a-z_]{3,}", normalised(symptom))]
                found = (sorted(words, key=len, reverse=True), re.compile(pattern_of(symptom)))
                self.symptoms.setdefault(anchor, []).append(found)
                tree.setdefault(anchor[0], set()).add(re.escape(anchor[1:]) + self._ahead(following))
        branches = (
            re.escape(bytes([first])) + b"(?:" + b"|".join(sorted(rest, reverse=True)) + b")"
            for first, rest in tree.items()
        )
        self.pattern = re.compile(b"|".join(branches))

    def anchor(self, symptom: str) -> tuple[bytes, list[bytes]]:
        """The end of a word, or a piece of it, and what follows: the word's rest, and words without numbers.

        ``"No backend type associated"`` gives ``b"kend"`` and ``[b"", b"type", b"associated"]``.
        """

        def rank(choice: tuple[str, list[str]]) -> tuple[bool, bool, bool, int, int]:
            part, following = choice
            length = len(part) + sum(map(len, following))
            enough = length >= self._ENOUGH
            rarity = -self._RARE.index(part[0]) if enough else 0
            return len(part) > 3, len(following) > 1, enough, rarity, length

        choices = []
        for piece in pieces(symptom):
            words = re.findall(r"\w+", piece)
            for index in range(len(words)):
                plain = list(itertools.takewhile(re.compile("(?!n$)[a-z_]+$").match, words[index:]))
                for at in range(len(plain[0]) if plain else 0):
                    choices.append((plain[0][at : at + 9], [plain[0][at + 9 :], *plain[1:]]))
        part, following = max(choices, key=rank, default=("", [""]))
        return part.encode(), [word.encode() for word in following]

    def _ahead(self, following: list[bytes]) -> bytes:
        """A look at what follows an anchor, up to the line's end: ``saved`` alone is in many logs."""
        pattern = b""
        for word in reversed(following[1:]):
            pattern = self._BETWEEN + b"(?:" + word + pattern + rb"|[\r\n]|\Z)"
        return b"(?=" + following[0] + pattern + b")"

    def is_symptom(self, lowered: bytes, position: int, anchor: bytes) -> bool:
        """Whether the anchor at this place of a log stands in its symptom."""
        around = lowered[max(position - AROUND, 0) : position + len(anchor) + AROUND]
        wanted = [
            pattern
            for words, pattern in self.symptoms[anchor]
            if all(word in around for word in words)  # far quicker than what follows, and nearly always false
        ]
        if not wanted:
            return False
        lines = _ANSI.sub("", around.decode("utf-8", "replace")).replace("\r", "\n").split("\n")
        text = normalised(" ".join(map(_without_prefixes, lines)))
        return any(pattern.search(text) for pattern in wanted)


class Candidates:
    """Finds the places in the blocks of a log that are worth a closer look.

    Most lines of a log are those before it with other numbers in them. So a line without its digits is looked through
    once, and its like are passed over.
    """

    _SHAPE = bytes.maketrans(bytes(range(65, 91)) + b"\r", bytes(range(97, 123)) + b"\n")
    _DIGITS = b"0123456789"

    def __init__(self, anchors: Anchors) -> None:
        self.anchors = anchors
        self.seen: set[bytes] = set()
        self.suspects: set[bytes] = set()
        self.read: Counter[bytes] = Counter()

    def places(self, block: bytes, lowered: bytes) -> Iterator[tuple[int, bytes]]:
        """Where anchors are in a block, in their order. ``lowered`` is the block in lower case."""
        shapes = block.translate(self._SHAPE, self._DIGITS).split(b"\n")
        here = set(shapes)
        new = here - self.seen
        lines = b"\n".join(new)
        self.suspects.update(_line_around(lines, position) for position, _ in self._anchors_in(lines))
        if len(self.seen) > MAX_SHAPES:
            self.seen.clear()
        self.seen |= new
        if here.isdisjoint(self.suspects):
            return
        begin = 0
        for shape, line in zip(shapes, lowered.replace(b"\r", b"\n").split(b"\n")):
            if shape in self.suspects:
                yield from ((begin + position, anchor) for position, anchor in self._anchors_in(line))
            begin += len(line) + 1

    def was_read(self, anchor: bytes) -> None:
        """There is a symptom with this anchor. After some, no more of them are looked for."""
        self.read[anchor] += 1
        if self.read[anchor] == MAX_PLACES:
            self.suspects = {shape for shape in self.suspects if any(self._anchors_in(shape))}

    def _anchors_in(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        for found in self.anchors.pattern.finditer(text):
            if self.read[found.group()] < MAX_PLACES:
                yield found.start(), found.group()


def _line_around(text: bytes, position: int) -> bytes:
    end = text.find(b"\n", position)
    return text[text.rfind(b"\n", 0, position) + 1 : end if end >= 0 else len(text)]


def excerpt(stream: IO[bytes], anchors: Anchors, progress: Callable[[int], None]) -> tuple[str, list[int], int]:
    """What is worth reading of a log.

    Args:
        stream: the log.
        anchors: what is looked for.
        progress: is told how many bytes were looked through, after each block.

    Returns:
        The text, the number of each of its lines, and the size of the log in bytes.
    """
    pieces: list[str] = []
    numbers: list[int] = []
    candidates = Candidates(anchors)
    rest, lines_before, done, kept = b"", 0, 0, 0
    taken = 0  # position in the block up to which everything was taken
    while True:
        read = stream.read(BLOCK)
        block = rest + read
        done += len(read)
        ended = len(read) < BLOCK
        limit = len(block) if ended else max(len(block) - AFTER, 0)
        lowered = block.lower()
        number, counted = lines_before, 0
        for hit, anchor in candidates.places(block, lowered) if kept <= MAX_READ else ():
            if hit >= limit or kept > MAX_READ:
                break
            if hit < taken or not anchors.is_symptom(lowered, hit, anchor):
                continue
            candidates.was_read(anchor)
            begin = max(taken, block.rfind(b"\n", 0, max(hit - BEFORE, 0)) + 1)
            end = block.find(b"\n", hit + AFTER)
            end = len(block) if end < 0 or end - hit > 2 * AFTER else end + 1
            end = min(end, hit + 2 * AFTER)
            number, counted = number + block.count(b"\n", counted, begin), begin
            for line in block[begin:end].decode("utf-8", "replace").split("\n"):
                pieces.append(line[-BEFORE:])
                numbers.append(number + 1)
                number += 1
            number -= 1
            counted = taken = end
            kept += end - begin
        progress(done)
        if ended:
            return "\n".join(pieces), numbers, done
        keep = min(BEFORE + AFTER, len(block))
        lines_before += block.count(b"\n", 0, len(block) - keep)
        rest, taken = block[-keep:], max(taken - (len(block) - keep), 0)


def opened(name: str) -> IO[bytes]:
    """A log for reading, ``-`` for standard input. gzip is recognized by its first bytes.

    Raises:
        OSError: it cannot be opened.
    """
    stream: IO[bytes] = sys.stdin.buffer if name == "-" else open(name, "rb")  # noqa: SIM115 the caller closes it
    begin = stream.peek(2)[:2] if isinstance(stream, io.BufferedReader) else b""
    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if begin == b"\x1f\x8b" else stream
