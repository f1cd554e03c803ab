"""Command output: text for any encoding and for closed pipes, and tables, which fit the terminal."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Any, Callable, Optional, TextIO

from lightning_patches.errors import LightningPatchesError
from lightning_patches.notices import cut as cut
from lightning_patches.notices import printable as printable

SCHEMA = 1
"""Version of the output of ``--json``. The same version may get new keys, and keeps the old ones."""
MAX_TEXT_WIDTH = 100
"""Most columns of a text in a wide terminal."""
MIN_PROSE_WIDTH = 20
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


class WriteError(LightningPatchesError):
    """Nothing more can be written to standard output."""


def prepare() -> None:
    """Replace closed standard streams, and escape characters that the terminal's encoding lacks."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def finish() -> None:
    """Flush both streams, because an error in the interpreter's flush at exit would change the exit status.

    Raises:
        WriteError: standard output cannot be written, and not because of a closed pipe.
    """
    try:
        _write_out(sys.stdout.flush)
    except (ValueError, AttributeError):
        pass  # the stream is closed
    finally:
        try:
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            _discard(sys.stderr)


class Styled(str):
    """Text whose only control characters are the escape sequences of :func:`styled`."""


def write(text: str = "") -> None:
    """Write one or more lines. Control characters are escaped, since text may come from a file of another user.

    A closed pipe is not an error: the command keeps its exit status.

    Raises:
        WriteError: standard output cannot be written, and not because of a closed pipe.
    """
    shown = text if isinstance(text, Styled) else _clean(text)
    _write_out(lambda: print(shown, flush=True))


def _clean(text: str) -> str:
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def _write_out(act: Callable[[], None]) -> None:
    try:
        act()
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        raise WriteError(f"cannot write: {error.strerror or error}") from None


def write_json(data: dict[str, Any]) -> None:
    write(json.dumps({"schema": SCHEMA, **data}, indent=2))


def paragraph(text: str, indent: str = "") -> str:
    """Wrap ``text`` to the terminal."""
    return wrapped(printable(" ".join(text.split())), _text_width(), indent)


def _text_width() -> int:
    """Return the columns for texts: those of the terminal, but not too many; in a pipe, ``COLUMNS`` or 80."""
    columns = shutil.get_terminal_size().columns
    return min(columns, MAX_TEXT_WIDTH) if sys.stdout.isatty() else columns


def complain(text: str) -> None:
    """Write a message to stderr, wrapped to the terminal."""
    text = printable(text)
    if sys.stderr.isatty():
        text = _hanging(text, min(shutil.get_terminal_size().columns, MAX_TEXT_WIDTH))
    try:
        print(text, file=sys.stderr)
    except OSError:
        _discard(sys.stderr)  # the exit status still reports the problem


def wrapped(text: str, width: int, indent: str = "") -> str:
    """Break ``text`` into lines of at most ``width`` columns.

    Words and texts between backticks are never broken, because users copy them. Longer ones get a separate line.
    """
    return _filled(" ".join(text.split()), width, indent, indent)


def _filled(text: str, width: int, first: str, others: str) -> str:
    lines, is_empty = [first], True
    for gap, word in re.findall(r"( *)((?:`[^`]*`|PR #\d+|[^ ])+)", text):
        if not is_empty and text_width(lines[-1] + gap + word) > width:
            lines.append(others + word)
        else:
            lines[-1] += gap + word
        is_empty = False
    return "\n".join(lines)


def text_width(text: str) -> int:
    """Columns that ``text`` takes in a terminal: none for combining characters, two for wide ones."""
    if text.isascii():
        return len(text)
    import unicodedata

    marks = sum(unicodedata.category(one) in ("Mn", "Me") for one in text)
    return len(text) - marks + sum(unicodedata.east_asian_width(one) in "WF" for one in text)


def fitted(text: str, width: int) -> str:
    """Wrap the paragraphs, lists and two-column tables of a docstring.

    A line is joined to the line before it if it is indented more, or if both are not indented. The second column of a
    table stays aligned.
    """
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        indent, before = _indent(line), _indent(lines[-1]) if lines else 0
        is_joined = bool(line.strip() and lines and lines[-1].strip()) and (indent > before or indent == before == 0)
        if is_joined and not lines[-1].endswith(":"):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line.rstrip())
    return "\n".join(_hanging(line, width) for line in lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _hanging(line: str, width: int) -> str:
    column = re.match(r" +\S+(?: \S+)*? {2,}", line)
    indent = " " * (len(column.group()) if column else _indent(line))
    return _filled(line, width, "", indent)


def shown(line: str) -> str:
    """Return a text in one line, shortened, and without control characters."""
    return cut(printable(" ".join(line.split())), 700)


def styled(text: str, style: str) -> str:
    """Return ``text`` in a style such as ``"bold red"``; unchanged if standard output is no terminal with colors."""
    text = _clean(text)
    if not style or not _has_colors():
        return text
    start = ";".join(_CODES[word] for word in style.split())
    return Styled("\n".join(f"\x1b[{start}m{line}\x1b[0m" if line else "" for line in text.split("\n")))


def _has_colors() -> bool:
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():  # see no-color.org
        return False
    # Windows sets no TERM. Its older consoles print escape sequences as text; Windows Terminal sets WT_SESSION.
    return os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown") or "WT_SESSION" in os.environ


def write_table(header: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str] = ()) -> None:
    """Write a table in aligned columns, which fits the terminal, or 80 columns in a pipe.

    Texts are wrapped, but no word is broken. If the columns do not fit, the last column is written below the others. If
    they still do not fit, each row becomes a short list.

    Args:
        header: titles of the columns. The last column has sentences, and the others have short values.
        rows: one text for each column.
        styles: a style for each row, see :func:`styled`.
    """
    lines = [[printable(text) for text in line] for line in (header, *rows)]
    columns = shutil.get_terminal_size().columns
    widths = _column_widths(lines, columns, MIN_PROSE_WIDTH)
    widths_without_last = _column_widths([line[:-1] for line in lines], columns) if widths is None else None
    for index, (line, style) in enumerate(zip(lines, ("bold", *styles, *[""] * len(lines)))):
        if widths is not None:
            write(styled(_aligned(line, widths), style))
        elif widths_without_last is not None:
            write(styled(_aligned(line[:-1], widths_without_last), style or "bold"))
            if line[-1]:
                write(styled(wrapped(line[-1], _text_width(), "    "), "" if index else "bold"))
        elif index:
            facts = ", ".join(f"{title.lower()}: {text}" for title, text in list(zip(header, line))[1:-1] if text)
            write(styled(line[0], "bold"))
            for text, text_style in ((facts, style), (line[-1], "")):
                if text:
                    write(styled(wrapped(text, columns, "  "), text_style))


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    columns = (wrapped(text, width).split("\n") for text, width in zip(row, widths))
    lines = (
        "  ".join(text + " " * (width - text_width(text)) for text, width in zip(line, widths)).rstrip()
        for line in itertools.zip_longest(*columns, fillvalue="")
    )
    return "\n".join(lines)


def _column_widths(lines: Sequence[Sequence[str]], terminal_width: int, least_prose: int = 0) -> Optional[list[int]]:
    """Return the widths of table columns with two spaces between them.

    Args:
        lines: the texts of each line.
        terminal_width: width of the terminal.
        least_prose: if not 0, narrow the last column before the others, down to this width.

    Returns:
        Widths in which no word is broken; ``None`` if the columns do not fit into ``terminal_width``.
    """
    columns = list(zip(*lines))
    widths = [max(map(text_width, column)) for column in columns]
    least = [max(text_width(word) for text in column for word in wrapped(text, 1).split("\n")) for column in columns]
    order = sorted(range(len(widths)), key=lambda column: -widths[column])
    if least_prose:
        least[-1] = max(least[-1], min(least_prose, widths[-1]))
        order.sort(key=lambda column: column != len(widths) - 1)
    for column in order:
        excess = sum(widths) + 2 * (len(widths) - 1) - terminal_width
        widths[column] = max(least[column], widths[column] - max(excess, 0))
    return widths if sum(widths) + 2 * (len(widths) - 1) <= terminal_width else None


def _discard(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that the interpreter's flush at exit can't fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError, AttributeError):
        pass
