"""Open a log: standard input, a pipe or a file, compressed or not. Size and memory are bounded.

The first bytes show the compression. Data is decompressed in small blocks. UTF-16 (from PowerShell) is converted to
UTF-8.
"""

from __future__ import annotations

import codecs
import importlib
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import IO, Any, Callable, NamedTuple, Optional

from lightning_patches.cli import _files, _output
from lightning_patches.cli._exit_status import UsageError

MAX_BYTES = 2 << 30
"""Most bytes that are read of a log, and of each layer of compression."""
MAX_LAYERS = 3
"""Most layers of compression that are decompressed."""
MAX_MEMORY = 256 << 20
"""Most bytes of memory for a decompressor. `xz -9` needs 65 MB."""
CHUNK = 1 << 16
"""Bytes that are read or decompressed at once."""
_HEAD_BYTES = 512
"""Number of first bytes that show the format."""


@dataclass
class Stream:
    """A log that is open for reading.

    Args:
        chunks: the decompressed contents.
        size: number of bytes that will be read; 0 if unknown.
        left_out: a sentence about each part that is not read. The list is complete at the end of ``chunks``.
    """

    chunks: Iterator[bytes]
    size: int = 0
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
        stream = Stream(iter(()))
        chunks: Iterator[bytes] = iter(lambda: file.read(CHUNK), b"")
        first, chunks = _peek(chunks)
        if _format(first) is None and _is_regular(file):
            stream.size = min(os.fstat(file.fileno()).st_size, MAX_BYTES)
            chunks = _both_ends(chunks, file, stream.left_out)
        else:
            chunks = _limited(chunks, stream.left_out)
        stream.chunks = _as_utf_8(_unpacked(chunks, name, stream.left_out))
        yield stream
    finally:
        if name != "-":
            file.close()


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise OSError(0, "standard input is closed")
    file: IO[bytes] = sys.stdin.buffer
    if _is_terminal(file):
        _output.complain("Paste the log, then press Ctrl-D.")
    elif _is_device(file):
        raise OSError(0, "it is a device, not a file")
    return file


def _open(name: str) -> IO[bytes]:
    mode = os.stat(name).st_mode
    if stat.S_ISCHR(mode) and not os.path.samefile(name, os.devnull):
        raise OSError(0, "it is a device, not a file")
    return open(name, "rb") if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) else _files.open_regular(name)


def _is_terminal(file: IO[bytes]) -> bool:
    try:
        return file.isatty()
    except (AttributeError, ValueError):
        return False


def _is_device(file: IO[bytes]) -> bool:
    try:
        status = os.fstat(file.fileno())
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISCHR(status.st_mode) and not os.path.samestat(status, os.stat(os.devnull))


def _is_regular(file: IO[bytes]) -> bool:
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):
        return False


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


def _both_ends(chunks: Iterator[bytes], file: IO[bytes], left_out: list[str]) -> Iterator[bytes]:
    """Yield a file, or the beginning and the end of a file that is larger than :data:`MAX_BYTES`."""
    done = 0
    for chunk in chunks:
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
    yield from _limited(iter(lambda: file.read(CHUNK), b""), left_out)


class _Format(NamedTuple):
    """A compression format.

    Args:
        magic: matches the first bytes.
        module: name of the module in the standard library.
        tool: a program that decompresses with the option ``-dc``.
        make: returns a decompressor with the interface of :class:`bz2.BZ2Decompressor`.
    """

    magic: re.Pattern[bytes]
    module: str
    tool: str
    make: Callable[[Any], Any]


class _Gzip:
    """zlib's decompressor with the interface of the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


_FORMATS = (
    _Format(re.compile(rb"\x1f\x8b\x08"), "zlib", "gzip", lambda _: _Gzip()),
    _Format(re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), "bz2", "bzip2", lambda bz2: bz2.BZ2Decompressor()),
    _Format(
        re.compile(rb"\xfd7zXZ\x00|\x5d\x00\x00", re.DOTALL),
        "lzma",
        "xz",
        lambda lzma: lzma.LZMADecompressor(memlimit=MAX_MEMORY),
    ),
    _Format(re.compile(rb"\x28\xb5\x2f\xfd"), "compression.zstd", "zstd", lambda zstd: zstd.ZstdDecompressor()),
)


def _format(first: bytes) -> Optional[_Format]:
    return next((one for one in _FORMATS if one.magic.match(first)), None)


def _unpacked(chunks: Iterator[bytes], name: str, left_out: list[str], layers: int = 0) -> Iterator[bytes]:
    """Decompress all layers of compression.

    Raises:
        UsageError: there are more than :data:`MAX_LAYERS` layers, this Python lacks the module, nothing can be
            decompressed, or the data is an archive of several files.
    """
    first, chunks = _peek(chunks)
    shown = "standard input" if name == "-" else _output.printable(name)
    if first.startswith((b"PK\x03\x04", b"PK\x05\x06")) or first[257:262] == b"ustar":
        raise UsageError(f"{shown} is an archive: unpack it, and pass the log in it.")
    found = _format(first)
    if found is None:
        return chunks
    if layers == MAX_LAYERS:
        raise UsageError(f"{shown} cannot be read: it is compressed more than {MAX_LAYERS} times.")
    try:
        module = importlib.import_module(found.module)
    except ImportError:
        raise UsageError(
            f"{shown} cannot be read: this Python has no {found.module}. Run "
            f"`{found.tool} -dc FILE | lightning-patches diagnose -`."
        ) from None
    begun = _peek(_decompressed(chunks, lambda: found.make(module), found.magic, shown, left_out))[1]
    return _unpacked(_limited(begun, left_out), name, left_out, layers + 1)


def _decompressed(
    chunks: Iterator[bytes], make: Callable[[], Any], magic: re.Pattern[bytes], shown: str, left_out: list[str]
) -> Iterator[bytes]:
    """Decompress one or more consecutive streams. Other data after them is ignored, as gzip does."""
    one, rest, is_begun = make(), b"", False
    for chunk in chain(chunks, [b""]):
        data, is_last = rest + chunk, not chunk
        rest = b""
        while True:
            if one.eof:
                data = data.lstrip(b"\0")
                if len(data) < _HEAD_BYTES and not is_last:
                    rest = data
                    break
                if not magic.match(data):
                    return
                one = make()
            try:
                block = one.decompress(data, CHUNK)
            except Exception as error:  # each module raises another class
                if not is_begun:
                    raise UsageError(f"{shown} cannot be unpacked: {error}") from None
                left_out.append(f"It is damaged; the lines up to that point were read: {_output.shown(str(error))}.")
                return
            data = one.unused_data if one.eof else b""
            is_begun = is_begun or bool(block)
            if block:
                yield block
            if not data and (one.eof or (one.needs_input and not (is_last and block))):
                break
    if not one.eof:
        if not is_begun:
            raise UsageError(f"{shown} cannot be unpacked: it ends too early")
        left_out.append("It ends too early; the lines up to that point were read.")


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def _as_utf_8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    first, chunks = _peek(chunks)
    encoding = next((encoding for mark, encoding in _MARKS if first.startswith(mark)), "")
    is_text = b"\n\0" in first or b"\0\n" in first or first.count(b"\0") > len(first) // 4
    if not encoding or not is_text:
        return chunks
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return (decoder.decode(chunk, not chunk).encode("utf-8", "replace") for chunk in chain(chunks, [b""]))
