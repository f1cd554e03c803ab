"""Logs: read at the speed of the disk, and taken apart into the errors that they tell of.

A log may hold gigabytes of progress bars and one traceback. So one compiled pass over the bytes looks for anchors, a
rare piece of a word of each symptom, and only what stands around an anchor whose symptom is really there is read.
"""

from __future__ import annotations

import bisect
import gzip
import html
import io
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Callable, NamedTuple, Optional, Protocol, cast

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
MAX_SEEN = 32 * 1024 * 1024
"""Bytes of different lines that are remembered."""
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
_BREAK = re.compile(r"<br\s*/?>|</?pre\b[^>]*>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{2,4}|#x[0-9a-fA-F]{2,4});")
_DOCKER = re.compile(r'\{"log":".*\}\s*$')
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
_IN_WORKER = "Original Traceback"
_HIDDEN = re.compile(r"\d+ frames? hidden|HYDRA_FULL_ERROR")
_OURS = re.compile(rb"lightning_patches: [^\n]{0,200}\d fix(?:es)? \('lightning-patches status'")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_ERROR = re.compile(
    r"^\s*((?:[\w<>]+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning|Failure|Timeout)\b.*|\w+(?:\.\w+)+: .*)"
)


class Frame(NamedTuple):
    """A frame of a traceback.

    Args:
        path: of its file, as the log has it.
        function: its name, "" where the log does not tell.
    """

    path: str
    function: str


@dataclass
class Raised:
    """An error in a log.

    Args:
        first, last: indices of its lines, from the traceback's first one to the last one of its message.
        message: index of the line on which its message begins; ``first`` where there is no traceback.
        words: that line.
        frames: of the traceback.
        before: the error during whose handling it was raised, or that it names as its cause.
        is_complete: the traceback is there from its beginning to the message, with all frames.
    """

    first: int
    last: int
    message: int
    words: str
    frames: tuple[Frame, ...] = ()
    before: Optional[Raised] = None
    is_complete: bool = False

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
        tail: the end of the log, as it is, whether that was read or not.
        tail_line: number of its first line.
        has_traceback: somewhere in the log there is one, known or not.
        is_patched: somewhere in the log our line says that fixes were applied.
    """

    lines: list[str]
    numbers: list[int]
    searched: str = ""
    starts: list[int] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    tail: str = ""
    tail_line: int = 1
    has_traceback: bool = False
    is_patched: bool = False

    @property
    def files(self) -> list[str]:
        """The files of all frames."""
        return [frame.path for error in self.raised for frame in error.frames]

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
        for line in _unwrapped(original).split("\r"):  # a progress bar writes over itself
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


def _unwrapped(line: str) -> str:
    """A line of a web page or of Docker's JSON log as the program wrote it; what a page breaks is apart by ``\\r``."""
    if _DOCKER.match(line):
        try:
            line = _ANSI.sub("", str(json.loads(line)["log"])).rstrip("\n")
        except ValueError:
            return line
    if "<" in line:
        line = _BREAK.sub("\r", line)
    return html.unescape(line) if _ENTITY.search(line) else line


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
        begin, is_complete = at, _BEGIN in line
        frames: list[Frame] = []
        if (
            _IN_WORKER in line and last is not None
        ):  # what a process was told by its worker: the frames above go on here
            frames, is_complete = list(last.frames), last.is_complete
        at += _BEGIN in line  # otherwise somebody has cut off the traceback's beginning
        message = None
        while at < len(indices) and message is None:
            line = lines[indices[at]]
            frame = _FRAME.search(line)
            if frame:
                frames.append(Frame(frame["file"] or frame["path"], frame["name"] or frame["in"] or ""))
            elif _BEGIN in line or any(words in line for words in _CHAINED):
                break
            elif frames and _ERROR.match(_BOX.sub(" ", line)) and not line.startswith("    "):
                message = at
            at += 1
            is_complete = is_complete and not _HIDDEN.search(line)
        end = at
        if message is None:
            end, message, is_complete = at, at - 1, False
        while end < len(indices) and end - message < MAX_MESSAGE:
            line = lines[indices[end]]
            if not line.strip() or any(words in line for words in (_BEGIN, *_CHAINED)):
                break
            end += 1
        at = max(at, end)
        words = " ".join(_BOX.sub(" ", lines[indices[message]]).split())
        last = Raised(indices[begin], indices[end - 1], indices[message], words, tuple(frames), chained, is_complete)
        chained = None
        yield last


# ---------------------------------------------------------------- large logs


class Known(NamedTuple):
    """What a place in a log is compared with where it has an anchor.

    Args:
        symptom: as the record has it.
        following: how the word after the anchor begins; empty if that may be any.
        rarest: the word of the symptom that is in the fewest texts.
        words: its other words.
        pattern: finds it in normalised text.
    """

    symptom: str
    following: bytes
    rarest: bytes
    words: list[bytes]
    pattern: re.Pattern[str]


class Anchors:
    """All symptoms, for a search through bytes.

    The anchor of a symptom is a piece of a word, from a rare letter to the word's end, with what stands around it on
    its line. Python's ``re`` skips over every character that begins no anchor, and gives one up at the first letter
    that differs, so the speed depends on how rare the first letters are, and the pairs that begin with them.

    Args:
        symptoms: as the records have them.
    """

    _ENOUGH = 8
    """Letters of a word and those that follow it that tell a symptom from everything else."""
    _PIECE = 3
    """Letters of an anchor, where there are as many."""
    _COMMON = 5
    """Symptoms that make a word a common one."""
    _WEIGHTS = (60, 60, 100)
    """What it costs to get as far as the second, third and fourth letter of an anchor."""
    _WHOLE = 200
    """And to its end."""
    _BETWEEN = rb"(?:\x1b\[[\d;?]*[a-z]|[^\w\r\n])*"
    """What may stand between two words of a line: boxes, quotes and colours as well."""

    def __init__(self, symptoms: Iterable[str]) -> None:
        self.symptoms: dict[bytes, list[Known]] = {}
        """The piece of a word with which an anchor begins, and what is known by it."""
        symptoms = list(dict.fromkeys(symptoms))
        text = " ".join(map(normalised, symptoms))
        choices = {symptom: self._choices(symptom, text) for symptom in symptoms}
        choices = {symptom: found for symptom, found in choices.items() if found}
        counts = Counter(text)
        letters = self._rare_letters(choices, counts)
        begun: set[str] = set()
        tree: dict[str, dict[str, dict[str, set[bytes]]]] = {}
        rarest = {symptom: min(counts[part[0]] for _, part, _ in found) for symptom, found in choices.items()}
        for symptom, found in sorted(choices.items(), key=lambda item: (-rarest[item[0]], item[0])):
            found = [choice for choice in found if choice[1][0] in letters]
            before, part, following = min(
                found, key=lambda choice: (self._cost(choice[1], text, begun), -len(choice[2]))
            )
            begun.update(part[:length] for length in range(2, 5))
            around = self._ahead(following) + (b"(?<=" + (before + part).encode() + b")" if before else b"")
            tree.setdefault(part[0], {}).setdefault(part[1], {}).setdefault(part[2:], set()).add(around)
            words = sorted(set(re.findall(r"[a-z_]{3,}", normalised(symptom))), key=text.count)
            first, *others = [word.encode() for word in words]
            begin = following[0][: self._PIECE].encode() if following else b""
            known = Known(symptom, begin, first, others, re.compile(pattern_of(symptom)))
            self.symptoms.setdefault(part.encode(), []).append(known)
        self.symptoms = {
            part: [one for other, known in self.symptoms.items() if part.startswith(other) for one in known]
            for part in self.symptoms
        }
        self._followed: dict[tuple[bytes, bytes], list[Known]] = {}
        self._next = re.compile(self._BETWEEN + rb"(\w{0,%d})" % self._PIECE)
        self.pattern = re.compile(
            _either(
                first.encode()
                + _either(
                    second.encode() + _either(rest.encode() + _either(around) for rest, around in rests.items())
                    for second, rests in seconds.items()
                )
                for first, seconds in tree.items()
            )
            or rb"(?!)"
        )

    def _choices(self, symptom: str, text: str) -> list[tuple[str, str, list[str]]]:
        """What may be a symptom's anchor: a word's beginning, its rest, and the words that follow without numbers.

        ``"No backend type associated"`` has among others ``("bac", "kend", ["type", "associated"])``.
        """
        choices = []
        for piece in pieces(symptom):
            words = re.findall(r"\w+", piece)
            for index in range(len(words)):
                plain = list(itertools.takewhile(re.compile("(?!n$)[a-z_]+$").match, words[index:]))
                for at in range(len(plain[0]) - 1 if plain else 0):
                    choices.append((plain[0][:at], plain[0][at:], plain[1:]))

        def size(choice: tuple[str, str, list[str]]) -> int:
            return len(choice[0]) + len(choice[1]) + sum(map(len, choice[2]))

        enough = min(self._ENOUGH, max(map(size, choices), default=0))
        choices = [choice for choice in choices if size(choice) >= enough]
        # "checkpoint", with nothing to follow, is in many logs.
        rare = [choice for choice in choices if choice[2] or text.count(choice[0] + choice[1]) < self._COMMON]
        choices = rare or choices
        length = min(self._PIECE, max((len(part) for _, part, _ in choices), default=0))
        return [choice for choice in choices if len(choice[1]) >= length]

    def _rare_letters(self, choices: dict[str, list[tuple[str, str, list[str]]]], counts: Counter[str]) -> set[str]:
        """The letters with which anchors begin: the rarest ones, and as few as will do."""
        begins = [{part[0] for _, part, _ in found} for found in choices.values()]
        letters = {min(some, key=lambda letter: counts[letter]) for some in begins}
        for letter in sorted(letters, key=lambda letter: (-counts[letter], letter)):
            if all(some & (letters - {letter}) for some in begins):
                letters.remove(letter)
        return letters

    def _cost(self, part: str, text: str, begun: set[str]) -> int:
        """How often an anchor is begun in vain, where no other one begins in the same way."""
        begins = [part[:length] for length in range(2, min(len(part), 4) + 1)]
        cost = sum(weight * text.count(begin) for begin, weight in zip(begins, self._WEIGHTS) if begin not in begun)
        return cost + self._WHOLE * text.count(part)

    def _ahead(self, following: list[str]) -> bytes:
        """A look at what follows an anchor, up to the line's end: ``saved`` alone is in many logs."""
        pattern = b""
        for word in reversed(following):
            pattern = self._BETWEEN + b"(?:" + word.encode() + pattern + rb"|[\r\n]|\Z)"
        return b"(?=" + pattern + b")" if pattern else b""

    def find(self, lowered: bytes, begin: int = 0) -> Iterator[re.Match[bytes]]:
        """The anchors in a part of a log, those that begin within another one too."""
        found = self.pattern.search(lowered, begin)
        while found is not None:
            yield found
            found = self.pattern.search(lowered, found.start() + 1)

    def known_at(self, lowered: bytes, found: re.Match[bytes]) -> list[Known]:
        """What has an anchor that begins with the words that were found."""
        following = self._next.match(lowered, found.end())
        key = found.group(), following[1] if following else b""
        if key not in self._followed:
            self._followed[key] = [
                known for known in self.symptoms[key[0]] if not key[1] or known.following in (b"", key[1])
            ]
        return self._followed[key]

    def symptom_at(self, lowered: bytes, found: re.Match[bytes], left_out: set[str]) -> Optional[str]:
        """The symptom in which an anchor stands, if there is one.

        Args:
            lowered: a part of the log, in lower case.
            found: the anchor in it.
            left_out: symptoms that are not asked for any more.
        """
        begin, end = max(found.start() - AROUND, 0), found.end() + AROUND
        wanted = [
            (known.symptom, known.pattern)
            for known in self.known_at(lowered, found)  # what is asked first is quick, and nearly always false
            if lowered.find(known.rarest, begin, end) >= 0
            and known.symptom not in left_out
            and all(lowered.find(word, begin, end) >= 0 for word in known.words)
        ]
        if not wanted:
            return None
        lines = _ANSI.sub("", lowered[begin:end].decode("utf-8", "replace")).replace("\r", "\n").split("\n")
        text = normalised(" ".join(_without_prefixes(part) for line in lines for part in _unwrapped(line).split("\r")))
        return next((symptom for symptom, pattern in wanted if pattern.search(text)), None)


def _either(patterns: Iterable[bytes]) -> bytes:
    *some, last = sorted(patterns, reverse=True) or [b""]
    return b"(?:" + b"|".join([*some, last]) + b")" if some else last


class Candidates:
    """Finds the places in the blocks of a log that are worth a closer look.

    Most lines of most logs are those before them with other numbers in them. So a block of which a sample says that
    it is such a log is looked through for new lines only, which takes a third of the time.
    """

    _SHAPE = bytes.maketrans(bytes(range(65, 91)) + b"\r123456789", bytes(range(97, 123)) + b"\n000000000")
    _SAMPLE = 16
    """One part in so many of a block is its sample."""
    _NEW = 8
    """One line in so many may be new in a block that is taken for an old one."""

    def __init__(self, anchors: Anchors) -> None:
        self.anchors = anchors
        self.seen: set[bytes] = set()
        self.size = 0
        self.read: Counter[str] = Counter()
        self.left_out: set[str] = set()

    def has_some(self, block: bytes, limit: int) -> bool:
        """Whether anchors may be in a block before ``limit``."""
        return not (self._is_old(block[: len(block) // self._SAMPLE], 0) and self._is_old(block, limit))

    def next(self, lowered: bytes, begin: int, end: int) -> Optional[int]:
        """Where the next symptom is in a block, between two places; ``None`` if there is no more. After some places of
        a symptom no more of it are looked for. ``lowered`` is the block in lower case."""
        for found in self.anchors.find(lowered, begin):
            if found.start() >= end:
                return None
            symptom = self.anchors.symptom_at(lowered, found, self.left_out)
            if symptom is not None:
                self.read[symptom] += 1
                if self.read[symptom] == MAX_PLACES:
                    self.left_out.add(symptom)
                return found.start()
        return None

    def _is_old(self, block: bytes, limit: int) -> bool:
        """Whether all lines but a few were seen already, with other numbers, and none has an anchor of what is
        still looked for.

        The last line is left out where it has no end and begins after ``limit``: half an anchor looks like one.
        """
        shapes = block.translate(self._SHAPE)
        end = shapes.rfind(b"\n")
        lines = shapes[: end if end >= limit else len(shapes)].split(b"\n")
        new = set(lines) - self.seen
        text = b"\n".join(new)
        for found in self.anchors.find(text):
            if any(known.symptom not in self.left_out for known in self.anchors.known_at(text, found)):
                return False
        self.size += sum(map(len, new))
        if self.size > MAX_SEEN:
            self.seen.clear()
            self.size = 0
        self.seen |= new
        return len(new) * self._NEW <= len(lines)


class Reader(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Noted:
    """A log that is read: what its end says, and whether there is a traceback in it.

    Args:
        stream: the log.
        feed: is given each block as well.
    """

    _MARK = _BEGIN.encode()

    def __init__(self, stream: IO[bytes], feed: Callable[[bytes], None] = lambda block: None) -> None:
        self._stream = stream
        self._feed = feed
        self._tail = b""
        self._lines = 0
        self._has_traceback = False
        self._is_patched = False

    def read(self, size: int, /) -> bytes:
        block = self._stream.read(size)
        self._feed(block)
        edge = self._tail[-len(self._MARK) :] + block[: len(self._MARK)]
        self._has_traceback = self._has_traceback or self._MARK in block or self._MARK in edge
        if not self._is_patched and b"lightning_patches: " in block:
            self._is_patched = _OURS.search(block) is not None
        self._lines += block.count(b"\n")
        self._tail = (self._tail + block if len(block) < BEFORE else block)[-BEFORE:]
        return block

    def tell(self, text: Text) -> Text:
        """Write down in ``text``, which was taken from this log, what is known of the whole."""
        text.tail = self._tail.decode("utf-8", "replace")
        text.tail_line = self._lines - self._tail.count(b"\n") + 1
        text.has_traceback = self._has_traceback
        text.is_patched = self._is_patched
        return text


def excerpt(stream: Reader, anchors: Anchors, progress: Callable[[int], None]) -> tuple[str, list[int], int]:
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
    taken = looked = 0  # positions in the block up to which everything was taken, and looked through
    while True:
        read = stream.read(BLOCK)
        block = rest + read
        done += len(read)
        ended = len(read) < BLOCK
        limit = len(block) if ended else max(len(block) - AFTER, 0)
        lowered = block.lower()
        number, counted = lines_before, 0
        looked = limit if kept > MAX_READ or not candidates.has_some(block, limit) else max(looked, taken)
        while kept <= MAX_READ:
            hit = candidates.next(lowered, looked, limit)
            if hit is None:
                break
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
            counted = taken = looked = end
            kept += end - begin
        progress(done)
        if ended:
            return "\n".join(pieces), numbers, done
        keep = min(BEFORE + AFTER, len(block))
        lines_before += block.count(b"\n", 0, len(block) - keep)
        rest = block[-keep:]
        taken, looked = (max(position - (len(block) - keep), 0) for position in (taken, max(looked, limit)))


def opened(name: str) -> IO[bytes]:
    """A log for reading, ``-`` for standard input. gzip is recognized by its first bytes, and so is UTF-16, as
    PowerShell writes it, which is read as a whole.

    Raises:
        OSError: it cannot be opened.
    """
    stream: IO[bytes] = sys.stdin.buffer if name == "-" else open(name, "rb")  # noqa: SIM115 the caller closes it
    begin = stream.peek(2)[:2] if isinstance(stream, io.BufferedReader) else b""
    if begin in (b"\xff\xfe", b"\xfe\xff"):
        return io.BytesIO(stream.read().decode("utf-16", "replace").encode())
    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if begin == b"\x1f\x8b" else stream
