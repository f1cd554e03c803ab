"""Open a log: standard input, a pipe or a file, compressed or not. Size and memory are bounded.

The first bytes show the compression. UTF-16 (from PowerShell) is converted to UTF-8.
"""

from __future__ import annotations

import codecs
import importlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import IO, Any, cast

from lightning_patches.cli import _files, _output
from lightning_patches.cli._exit_status import UsageError

MAX_BYTES = 2 << 30
"""Most bytes that are read of a log, after decompression."""
CHUNK = 1 << 16
"""Bytes that are read or decompressed at once."""
_HEAD_BYTES = 512
"""Number of first bytes that show the format."""


@dataclass
class Stream:
    """A log that is open for reading.

    Args:
        chunks: the decompressed contents.
        left_out: a sentence about each part that is not read. The list is complete at the end of ``chunks``.
    """

    chunks: Iterator[bytes]
    left_out: list[str] = field(default_factory=list)
    _rest: bytes = b""

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes, or fewer at the end."""
        found, length = [self._rest], len(self._rest)
        while length < size:
            chunk = next(self.chunks, None)
            if chunk is None:
                break
            found.append(chunk)
            length += len(chunk)
        data = b"".join(found)
        self._rest = data[size:]
        return data[:size]


@contextmanager
def opened(name: str) -> Iterator[Stream]:
    """Open a log; ``-`` is standard input.

    Raises:
        OSError: the log can't be opened, or is a device.
        UsageError: the log can't be decompressed, or is an archive of several files.
    """
    file = _standard_input() if name == "-" else _open(name)
    try:
        buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, file))
        first = buffered.peek(_HEAD_BYTES)
        stream = Stream(iter(()))
        packed = next((one for one in _FORMATS if first.startswith(one)), None)
        if packed is not None:
            chunks = _limited(_decompressed(buffered, packed, _shown(name), stream.left_out), stream.left_out)
        elif stat.S_ISREG(_mode(file)):
            chunks = _both_ends(buffered, stream.left_out)
        else:
            chunks = _limited(_chunks(buffered), stream.left_out)
        first, chunks = _peek(chunks)
        if first.startswith((b"PK\x03\x04", b"PK\x05\x06")) or first[257:262] == b"ustar":
            raise UsageError(f"{_shown(name)} is an archive: unpack it, and pass the log in it.")
        if packed is not None and first.startswith(tuple(_FORMATS)):
            raise UsageError(f"{_shown(name)} is compressed more than once: unpack it once, and pass the result.")
        stream.chunks = _as_utf_8(first, chunks)
        yield stream
    finally:
        if name != "-":
            file.close()


def _shown(name: str) -> str:
    return "standard input" if name == "-" else _output.printable(name)


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise OSError(0, "standard input is closed")
    file: IO[bytes] = sys.stdin.buffer
    mode = _mode(file)
    if stat.S_ISCHR(mode) and file.isatty():
        _output.complain("Paste the log, then press Ctrl-D.")
    elif stat.S_ISCHR(mode) and not os.path.samestat(os.fstat(file.fileno()), os.stat(os.devnull)):
        raise OSError(0, "it is a device, not a file")
    return file


def _open(name: str) -> IO[bytes]:
    mode = os.stat(name).st_mode
    if stat.S_ISCHR(mode) and not os.path.samefile(name, os.devnull):
        raise OSError(0, "it is a device, not a file")
    return open(name, "rb") if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) else _files.open_regular(name)


def _mode(file: IO[bytes]) -> int:
    """Return the mode of a file; 0 if it has no descriptor."""
    try:
        return os.fstat(file.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return 0


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(CHUNK), b"")


def _peek(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes, and all chunks."""
    first = b""
    while len(first) < _HEAD_BYTES:
        chunk = next(chunks, None)
        if chunk is None:
            break
        first += chunk
    return first, chain([first] if first else [], chunks)


def _limited(chunks: Iterator[bytes], left_out: list[str]) -> Iterator[bytes]:
    """Yield the first :data:`MAX_BYTES` bytes."""
    done = 0
    for chunk in chunks:
        if done >= MAX_BYTES:
            left_out.append(
                f"Only the first {MAX_BYTES >> 30} GB were read. To read its end, run "
                "`... | tail -c 8000000 | lightning-patches diagnose -`."
            )
            return
        yield chunk
        done += len(chunk)


def _both_ends(file: IO[bytes], left_out: list[str]) -> Iterator[bytes]:
    """Yield a file, or the beginning and the end of a file that is larger than :data:`MAX_BYTES`."""
    done = 0
    for chunk in _chunks(file):
        yield chunk
        done += len(chunk)
        size = os.fstat(file.fileno()).st_size
        if done >= MAX_BYTES // 2 and size > MAX_BYTES:
            break
    else:
        return
    begin = size - MAX_BYTES // 2
    left_out.append(
        f"{(begin - done) / (1 << 30):.1f} GB in the middle of the log were not read. Later line numbers do not count "
        "the lines in that part."
    )
    file.seek(begin)
    yield b"\n"
    yield from _limited(_chunks(file), left_out)


_FORMATS = {
    b"\x1f\x8b\x08": ("gzip", "gzip"),
    b"BZh": ("bz2", "bzip2"),
    b"\xfd7zXZ\x00": ("lzma", "xz"),
    b"\x5d\x00\x00": ("lzma", "xz"),
    b"\x28\xb5\x2f\xfd": ("compression.zstd", "zstd"),
}
"""First bytes of a compressed file -> the module that reads it, and a program that unpacks it with ``-dc``."""


def _decompressed(file: IO[bytes], magic: bytes, shown: str, left_out: list[str]) -> Iterator[bytes]:
    """Decompress a file, or the part before its end or damage.

    Raises:
        UsageError: this Python lacks the module, or nothing can be decompressed.
    """
    name, tool = _FORMATS[magic]
    try:
        module: Any = importlib.import_module(name)
    except ImportError:
        raise UsageError(
            f"{shown} cannot be read: this Python has no {name}. Run `{tool} -dc FILE | lightning-patches diagnose -`."
        ) from None
    is_begun = False
    try:
        with module.open(file) as unpacked:
            for chunk in iter(lambda: unpacked.read1(CHUNK), b""):
                yield chunk
                is_begun = True
    except Exception as error:  # each module raises another class
        is_short = isinstance(error, EOFError)
        if not is_begun:
            raise UsageError(f"{shown} cannot be unpacked: {'it ends too early' if is_short else error}") from None
        damage = "It ends too early" if is_short else f"It is damaged ({_output.shown(str(error))})"
        left_out.append(f"{damage}; the lines up to that point were read.")


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def _as_utf_8(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    encoding = next((encoding for mark, encoding in _MARKS if first.startswith(mark)), "")
    is_text = b"\n\0" in first or b"\0\n" in first or first.count(b"\0") > len(first) // 4
    if not encoding or not is_text:
        return chunks
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return (decoder.decode(chunk, not chunk).encode("utf-8", "replace") for chunk in chain(chunks, [b""]))
