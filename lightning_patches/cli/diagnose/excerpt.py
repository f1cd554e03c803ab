"""Select parts of a large log: its first lines, the lines around errors and known output, and its end.

Long lines are split, and the number of lines is limited, so that memory is bounded.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Optional

MAX_BYTES = 8 << 20
"""Largest log that is read completely, and largest excerpt, in bytes."""
MAX_LINES = 200_000
"""The same limit in lines."""
BLOCK = 4 << 20
"""Bytes that are searched at once."""
HEAD = 50
"""Number of lines at the beginning that are kept, since they show the format."""
BEFORE, AFTER = 200, 60
"""Number of lines that are kept before and after an error or known output."""
END, MAX_END_LINES = 1 << 20, 20_000
"""Bytes and lines that are kept at the end."""
LONGEST = 1 << 18
"""Longest line, in bytes. A longer line is split, if possible at a carriage return of a progress bar."""
LONGEST_AROUND = 1 << 13
"""Most bytes that are kept of each line around an error or known output."""
MAX_SHAPES = 400_000
"""Most different lines that are remembered."""
MAX_SEARCHED = 50_000_000
"""Most lines that are searched. Later lines are kept only if they are at the end."""

_SHAPE = bytes.maketrans(b"123456789\r", b"000000000\n")
_ERROR = re.compile(rb"Traceback \(most|[A-Za-z](?:Error|Exception)\b")
_COMPROMISED = re.compile(rb"(?i:lightning)[^\n]{0,80}2\.6\.[23]\b")


def limits(share: int) -> tuple[int, int]:
    """Return the limits in bytes and lines for each of ``share`` logs."""
    return max(MAX_BYTES // share, min(MAX_BYTES, 1 << 16)), max(MAX_LINES // share, 500)


class _Piece(NamedTuple):
    """A line, or a part of a long line.

    Args:
        position: index among all pieces, from 0.
        number: number of the line, from 1.
        text: the text without the line break.
    """

    position: int
    number: int
    text: bytes


class Excerpt:
    """The selected lines of a large log.

    Call :meth:`feed` for each block of the log, and then :meth:`finish`.

    Args:
        share: number of logs that share the limits.
    """

    def __init__(self, share: int = 1) -> None:
        self._max_bytes, self._max_lines = limits(share)
        self._max_end = max(END // share, min(END, 1 << 14)), max(MAX_END_LINES // share, 100)
        self._first: list[_Piece] = []
        self._recent: deque[_Piece] = deque()
        self._first_size = self._recent_size = 0
        self._before: list[_Piece] = []
        self._end: list[_Piece] = []
        self._rest = b""
        self._index = 0  # index of the next piece
        self._number = 1  # number of the next line
        self._done = 0  # pieces before this index were kept or left out
        self._until = HEAD
        self._shapes: set[int] = set()

    def feed(self, block: bytes) -> None:
        """Process the next block of the log."""
        data = self._rest + block
        if self._index >= MAX_SEARCHED:
            self._rest = self._skipped(data)
            return
        found = data.split(b"\n")
        self._rest = found.pop()
        is_endless = len(self._rest) > 4 * BLOCK
        if is_endless:
            found.append(self._rest)
            self._rest = b""
        self._take(found, is_endless)

    def finish(self) -> tuple[str, list[int], list[str]]:
        """Return the text, the number of each of its lines, and a sentence about each part that was left out."""
        self._take(self._rest.split(b"\n"), False)
        kept = {piece.position: piece for piece in (*self._first, *self._recent, *self._end)}
        chosen = [kept[index] for index in sorted(kept)]
        text = b"\n".join(piece.text.rstrip(b"\r") for piece in chosen)
        left_out = ["The log is large: its beginning, its end and the lines around errors were read."]
        if self._index > MAX_SEARCHED:
            left_out.append(f"After {MAX_SEARCHED:,} lines, only its end was read.")
        return text.decode("utf-8", "replace"), [piece.number for piece in chosen], left_out

    def _skipped(self, data: bytes) -> bytes:
        """Count the lines of a part that is not searched, and return its end."""
        cut = data.rfind(b"\n", 0, max(len(data) - END, 0)) + 1 or max(len(data) - 2 * END, 0)
        lines = data.count(b"\n", 0, cut)
        self._index += lines
        self._number += lines
        if cut:
            self._before, self._end = [], []
        return data[cut:]

    def _take(self, found: list[bytes], is_endless: bool) -> None:
        numbers: Sequence[int] = range(self._number, self._number + len(found))
        self._number += len(found) - is_endless
        if max(map(len, found), default=0) > LONGEST:
            pieces = [(number, piece) for number, line in zip(numbers, found) for piece in _pieces(line)]
            numbers, found = [number for number, _ in pieces], [piece for _, piece in pieces]
        places = self._places(found) if self._index < MAX_SEARCHED else []
        first = self._index - len(self._before)

        def piece(index: int) -> _Piece:
            at = index - self._index
            return self._before[index - first] if at < 0 else _Piece(index, numbers[at], found[at])

        size = self._index + len(found)
        ranges = [(self._index + at - BEFORE, self._index + at + AFTER) for at in places]
        chosen = {self._index + at for at in places}
        for begin, end in [(first, self._until), *ranges]:
            for index in range(max(begin, first, self._done), min(end, size)):
                self._keep(piece(index), None if index in chosen else LONGEST_AROUND)
            self._until = max(self._until, end)
        self._before = [piece(index) for index in range(max(first, size - BEFORE), size)]
        last = map(piece, range(max(self._index, size - self._max_end[1]), size))
        self._end = _last([*self._end, *last], *self._max_end)
        self._index = size

    def _keep(self, piece: _Piece, longest: Optional[int]) -> None:
        """Keep a piece. The first pieces use one half of the limit, and the last pieces the other half."""
        self._done = piece.position + 1
        piece = piece._replace(text=piece.text[:longest])
        if self._first_size < self._max_bytes // 2 and len(self._first) < self._max_lines // 2:
            self._first.append(piece)
            self._first_size += len(piece.text)
            return
        self._recent.append(piece)
        self._recent_size += len(piece.text)
        while self._recent_size > self._max_bytes // 2 or len(self._recent) > self._max_lines // 2:
            self._recent_size -= len(self._recent.popleft().text)

    def _places(self, found: list[bytes]) -> list[int]:
        """Return the indices of lines with errors or known output. Lines that differ only in numbers count once."""
        new: dict[bytes, bytes] = {}
        lines = dict.fromkeys(found)
        for line in lines:
            shaped = line.translate(_SHAPE)
            for shape in shaped.split(b"\n") if b"\n" in shaped else (shaped,):
                key = hash(shape)
                if key not in self._shapes:
                    self._shapes.add(key)
                    new[shape] = line
        if len(self._shapes) > MAX_SHAPES:
            self._shapes.clear()
        joined = b"\n".join(new)
        wanted = [one for one in needles() if one in joined]
        chosen = {line for shape, line in new.items() if _has_error(shape) or any(one in shape for one in wanted)}
        chosen.update([line for line in lines if b"2.6." in line and _COMPROMISED.search(line)][:1])
        places = []
        for at, line in enumerate(found):
            if not chosen:
                break
            if line in chosen:
                chosen.discard(line)
                places.append(at)
        return places


def _has_error(line: bytes) -> bool:
    return (b"Error" in line or b"Exception" in line or b"Traceback" in line) and _ERROR.search(line) is not None


def _pieces(line: bytes) -> Iterator[bytes]:
    at = 0
    while len(line) - at > LONGEST:
        end = line.rfind(b"\r", at, at + LONGEST) + 1 or at + LONGEST
        yield line[at:end]
        at = end
    yield line[at:]


def _last(pieces: list[_Piece], max_bytes: int, max_pieces: int) -> list[_Piece]:
    size = 0
    for count, piece in enumerate(reversed(pieces)):
        size += len(piece.text) + 1
        if size > max_bytes or count == max_pieces:
            return pieces[len(pieces) - max(count, 1) :]
    return pieces


@lru_cache(maxsize=None)
def needles() -> tuple[bytes, ...]:
    """Return the texts for which large logs are searched: output of known bugs, of the hang watch and of the checks."""
    return tuple(
        text.translate(_SHAPE)
        for text in (
            b"Learning rate set to", b"Watchdog caught", b"barrier(): using the device", b"currently unknown",
            b"command is available on your system but is not used", b"attempting graceful shutdown",
            b"ambiguous collection", b"invalid metadata", b"Parser key ", b"Could not generate a config",
            b"Initializing distributed", b"initializing ddp", b"All distributed processes registered",
            b"has been removed",
            b"Parsing of ckpt_path", b"batch size finder", b"__len__` defined", b"GHSA-", b"CVE-", b"PYSEC-",
            b"lightning_patches: ", b"Restored all states from", b"Trainer.fit` stopped", b"across ranks is zero",
            b"could not find the monitored key", b"exists and is not empty", b"64-true",
        )
    )  # fmt: skip
