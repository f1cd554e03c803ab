"""In: what the command line names: logs, scripts, words, a program. Out: what was read of it, taken apart.

Of a log of more than 8 MB what stands around errors and around what is known is read, and its end.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import IO, Callable, Optional, cast

from lightning_patches.cli import UsageError, _files, _output
from lightning_patches.cli.diagnose import describe, facts, hangs, known, lines, tracebacks
from lightning_patches.cli.diagnose.candidates import Log

WHOLE = 8 << 20
"""Bytes of a log that are read as a whole."""
BLOCK = 4 << 20
"""Bytes that are looked through at once."""
BEFORE, AFTER = 200, 60
"""Lines around a place that are read."""
END = 1 << 20
"""Bytes at a log's end that are read whatever they say."""
MAX_SHAPES = 400_000
"""Different lines that are remembered."""
MAX_PROSE = 600
"""Characters up to which a text without an error may be somebody's description of what happened."""

_LOGGED = re.compile(r"\w(?:error|exception):|\w: \d|^\w+: (?:error|fatal|warning):")
"""What a log has, and a description has not."""
_SHAPE = bytes.maketrans(b"123456789\r", b"000000000\n")
_ERROR = re.compile(rb"Traceback \(most|[A-Za-z](?:Error|Exception)\b")
_COMPROMISED = re.compile(rb"(?i:lightning)[^\n]{0,80}2\.6\.[23]\b")


def logs(names: list[str]) -> list[Log]:
    """The files of these names, or what is said in words."""
    words = " ".join(names)
    are_files = any(name == "-" or os.path.exists(name) for name in names)
    if not are_files and (lines.BEGIN in words or "\n" in words.strip()):
        return [taken_apart("", words)]
    if not are_files and _is_said(words):
        return [taken_apart("", words, is_words=True)]
    return [_log(name) for name in names]


def _is_said(words: str) -> bool:
    """Whether it is something that somebody says, and no name of a file."""
    if describe.CHINESE.search(words):
        return True
    if " " in words.strip():
        return not re.fullmatch(r"\S+\.(?:log|txt|out|err|gz)(?: \S+\.(?:log|txt|out|err|gz))*", words.strip())
    return bool(known_word(words))


def known_word(word: str) -> bool:
    """Whether a single word is one that records are about, and no name of a file."""
    word = word.strip("#`'\"().,:").lower()
    if not re.fullmatch(r"[\w.=-]{3,60}", word) or re.search(r"\.(?:log|txt|out|err|gz|py|ipynb|ya?ml|json)$", word):
        return False
    return word in _known_words()


@lru_cache(maxsize=None)
def _known_words() -> frozenset[str]:
    from lightning_patches.removed import rows

    found = {row.member.lower() for row in rows()}
    for record in known.records():
        for text in (*record.impact.symptoms, record.title):
            found.update(word for word in re.findall(r"[\w.-]{3,60}", text.lower()) if "_" in word or "." in word[1:-1])
    return frozenset(found | {"libuv", "use_libuv"})


def taken_apart(
    name: str, text: str, numbers: Optional[list[int]] = None, is_words: bool = False, is_whole: bool = True
) -> Log:
    read = lines.from_text(text, numbers)
    raised = tracebacks.find(read)
    is_words = (is_words or is_prose(text)) and not any(error.frames for error in raised)
    return Log(name, read, raised, facts.find(read, raised), is_words=is_words, is_whole=is_whole)


def is_prose(said: str) -> bool:
    """Whether it may be somebody's description, and no log."""
    if len(said) > MAX_PROSE or not said.strip():
        return False
    signs = [one for one in said if not one.isspace()]
    return sum(map(str.isalpha, signs)) >= 0.8 * len(signs) and not _LOGGED.search(said)


def _log(name: str) -> Log:
    try:
        if os.path.isdir(name):
            found = hangs.in_directory(name)
            if found:
                return Log(name, hangs=found)
        reports = hangs.Reports(name)
        with opened(name) as stream:
            one = _read(name, stream, reports, _Progress(name))
    except (OSError, EOFError, zlib.error) as error:
        meant = '. Say it in several words: `lightning-patches diagnose "it is stuck"`'
        hint = meant if isinstance(error, FileNotFoundError) and re.fullmatch(r"[^\W\d_]+", name) else ""
        raise UsageError(
            f"{_output.printable(name)} cannot be read: {getattr(error, 'strerror', None) or error}{hint}"
        ) from None
    hang = reports.finish()
    one.hangs = [hang] if hang is not None else []
    one.is_script = name.endswith(".py") and os.path.isfile(name)
    if one.is_script:
        source = _files.read_text(name, _files.MAX_SCRIPT)
        one.lines = [lines.Line(number, text) for number, text in enumerate(source.split("\n"), 1)]
    return one


def _read(name: str, stream: IO[bytes], reports: hangs.Reports, progress: Callable[[int], None]) -> Log:
    begin = stream.read(WHOLE + 1)
    reports.feed(begin)
    if len(begin) <= WHOLE:
        return taken_apart(name, begin.decode("utf-8", "replace").replace("\r\n", "\n"))
    text, numbers = excerpt(begin, stream, reports.feed, progress)
    return taken_apart(name, text, numbers, is_whole=False)


def excerpt(
    begin: bytes, stream: IO[bytes], feed: Callable[[bytes], None], progress: Callable[[int], None]
) -> tuple[str, list[int]]:
    """What is worth reading of a large log, and the number of each of its lines.

    Args:
        begin: what was read of it already.
        stream: the rest.
        feed: is given each block of the rest.
        progress: is told how many bytes were looked through, after each block.
    """
    kept: dict[int, bytes] = {}
    size = number = until = done = 0
    before: list[bytes] = []
    seen: set[bytes] = set()
    rest = tail = b""
    for block in _blocks(begin, stream, feed):
        done += len(block)
        tail = (tail + block)[-END:]
        found = (rest + block).split(b"\n")
        rest = found.pop()
        if len(rest) > 4 * BLOCK:  # a line without an end
            found, rest = [*found, rest], b""
        near, first = before + found, number - len(before)
        wanted = [range(first, until)]
        wanted += [range(number + at - BEFORE, number + at + AFTER) for at in _places(found, seen)]
        for index in (index for some in wanted for index in some):
            if first <= index < first + len(near) and index not in kept and size <= WHOLE:
                kept[index] = near[index - first][: lines.LONGEST * lines.MOST_PIECES]
                size += len(kept[index])
        until = max([until, *(some.stop for some in wanted)])
        before = near[-BEFORE:]
        number += len(found)
        progress(done)
    last = tail.split(b"\n")
    for index, line in enumerate(last, number + 1 - len(last)):
        kept.setdefault(index, line)
    order = sorted(kept)
    text = b"\n".join(kept[index].rstrip(b"\r") for index in order)
    return text.decode("utf-8", "replace"), [index + 1 for index in order]


def _blocks(begin: bytes, stream: IO[bytes], feed: Callable[[bytes], None]) -> Iterator[bytes]:
    for at in range(0, len(begin), BLOCK):
        yield begin[at : at + BLOCK]
    while True:
        block = stream.read(BLOCK)
        if not block:
            return
        feed(block)
        yield block


def _places(found: list[bytes], seen: set[bytes]) -> list[int]:
    """Indices of the lines around which errors, or what is known, may stand: of lines that differ but in numbers the
    first one. ``seen`` has the shapes of those before."""
    new: dict[bytes, int] = {}
    named = {index for index, line in enumerate(found) if b"2.6." in line and _COMPROMISED.search(line)}
    for index, line in enumerate(found):
        for shape in line.translate(_SHAPE).split(b"\n") if b"\r" in line else (line.translate(_SHAPE),):
            if shape not in seen:
                seen.add(shape)
                new[shape] = index
    if len(seen) > MAX_SHAPES:
        seen.clear()
    joined = b"\n".join(new)
    wanted = [one for one in needles() if one in joined] if _ERROR.search(joined) is None else needles()
    told = (index for shape, index in new.items() if _ERROR.search(shape) or any(one in shape for one in wanted))
    return sorted({*list(named)[:1], *told})


@lru_cache(maxsize=None)
def needles() -> tuple[bytes, ...]:
    """What programs print of known bugs outside of errors, and what comes of the hang watch and the checks."""
    return tuple(
        said.translate(_SHAPE)
        for said in (
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


class _Progress:
    """How much of a large log was looked through, on a terminal."""

    def __init__(self, name: str) -> None:
        known_size = name != "-" and not name.endswith(".gz") and os.path.isfile(name)
        self.size = os.path.getsize(name) if known_size else 0
        self.name = _output.printable(name)

    def __call__(self, done: int) -> None:
        if sys.stderr.isatty() and (self.size or done) > 4 * BLOCK:
            of = f" of {self.size >> 20}" if self.size else ""
            end = "\r\x1b[K" if done >= self.size > 0 else "\r"
            print(f"{self.name}: {done >> 20}{of} MB{end}", end="", file=sys.stderr, flush=True)


def opened(name: str) -> IO[bytes]:
    """A log for reading, ``-`` for standard input. gzip is recognized by its first bytes, and so is UTF-16, as
    PowerShell writes it, which is read as a whole.

    Raises:
        OSError: it cannot be opened, or is a device.
    """
    if name != "-" and stat.S_ISCHR(os.stat(name).st_mode) and not os.path.samefile(name, os.devnull):
        raise OSError(0, "it is a device, and no file")
    stream: IO[bytes] = sys.stdin.buffer if name == "-" else open(name, "rb")  # noqa: SIM115 the caller closes it
    begin = stream.peek(2)[:2] if isinstance(stream, io.BufferedReader) else b""
    if begin in (b"\xff\xfe", b"\xfe\xff"):
        return io.BytesIO(stream.read(16 * WHOLE).decode("utf-16", "replace").encode("utf-8", "replace"))
    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if begin == b"\x1f\x8b" else stream


def run_program(command: list[str], as_json: bool) -> tuple[int, list[Log]]:
    """Run a command, with what it says on standard error shown and kept. Its standard output is its own, or goes to
    our standard error where ours is for JSON."""
    with tempfile.TemporaryFile() as kept:
        try:
            process = subprocess.Popen(command, stdout=_stderr() if as_json else None, stderr=subprocess.PIPE)
        except OSError as error:
            raise UsageError(f"diagnose: {command[0]}: {error.strerror}") from None
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the program, and we explain what it does
        try:
            assert process.stderr is not None
            _tee(process.stderr, kept)
            status = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        kept.seek(0)
        name = shlex.join(command)
        reports = hangs.Reports(name)
        one = _read(name, kept, reports, lambda done: None)
    one.is_words = False
    one.facts.start = facts.Start("script", as_typed(command))
    hang = reports.finish()
    one.hangs = [hang] if hang is not None else []
    return 128 - status if status < 0 else status, [one]


def _stderr() -> int:
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError):
        return subprocess.DEVNULL


def _tee(source: IO[bytes], kept: IO[bytes]) -> None:
    while True:
        block = os.read(source.fileno(), 65536)
        if not block:
            return
        kept.write(block)
        try:
            sys.stderr.buffer.write(block)
            sys.stderr.buffer.flush()
        except OSError:
            pass  # nobody reads it any more


def as_typed(command: list[str]) -> str:
    """A command as `lightning-patches run` takes it, which has a Python of its own for a script or a module."""
    by_python = re.fullmatch(r"python[\d.]*", os.path.basename(command[0])) and len(command) > 1
    if by_python and (command[1] == "-m" or not command[1].startswith("-")):
        return shlex.join(command[1:])
    return f"-- {shlex.join(command)}"
