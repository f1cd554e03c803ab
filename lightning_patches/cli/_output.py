"""How commands write: text that survives a closed pipe, tables that suit a terminal or a pipe."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, TextIO

from lightning_patches.errors import LightningPatchesError
from lightning_patches.notices import printable as printable

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = 1
"""Of what ``--json`` writes: keys are only ever added to one."""
MAX_TEXT_WIDTH = 100
MIN_PROSE_WIDTH = 20


class WriteError(LightningPatchesError):
    """Nothing more can be written to standard output."""


def prepare() -> None:
    """A character that the terminal's encoding lacks must not end a command, nor a stream that was closed before."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def finish() -> None:
    """Flush now, where a closed pipe can still be dealt with, and not in the interpreter's shutdown.

    Raises:
        WriteError: it cannot be written, for another reason than that nobody reads it.
    """
    try:
        _write_out(sys.stdout.flush)
    except (ValueError, AttributeError):
        pass  # closed, or there never was one
    finally:
        try:
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            _discard(sys.stderr)


class Styled(str):
    """What :func:`styled` makes: text without what a terminal obeys, within escape sequences that are ours."""


def write(text: str = "") -> None:
    """Write a line, or several, without what a terminal obeys: it may come from a file that somebody else wrote.

    A reader that went away is no error: the exit status stays the command's own.

    Raises:
        WriteError: it cannot be written, for another reason.
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
    """``text`` wrapped to the terminal, or on one line when piped, so that ``grep`` sees whole sentences."""
    text = printable(" ".join(text.split()))
    if not sys.stdout.isatty():
        return indent + text
    return wrapped(text, min(shutil.get_terminal_size().columns, MAX_TEXT_WIDTH), indent)


def complain(text: str) -> None:
    """Write a message of one line to stderr, wrapped to the terminal."""
    text = printable(text)
    if sys.stderr.isatty():
        text = _hanging(text, min(shutil.get_terminal_size().columns, MAX_TEXT_WIDTH))
    try:
        print(text, file=sys.stderr)
    except OSError:
        _discard(sys.stderr)  # the exit status has to say it


def wrapped(text: str, width: int, indent: str = "") -> str:
    """``text`` in lines of at most ``width``. No word is broken, nor what stands between backticks, which is to be
    copied: it has a line of its own where it is too long."""
    return _filled(" ".join(text.split()), width, indent, indent)


def _filled(line: str, width: int, first: str, others: str) -> str:
    whole = re.sub(r"`[^`]*`|PR #\d+", lambda copied: copied.group().replace(" ", "\0"), line)
    lines = textwrap.fill(
        whole, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0", " ")


def fitted(text: str, width: int) -> str:
    """``text`` of several paragraphs in lines of at most ``width``. A line that is indented more than the one before
    belongs to it, as do lines of prose to each other; what stands in a second column stays there."""
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        indent, before = _indent(line), _indent(lines[-1]) if lines else 0
        belongs = bool(line.strip() and lines and lines[-1].strip()) and (indent > before or indent == before == 0)
        if belongs and not lines[-1].endswith(":"):
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
    """A line that a program has written, short enough and harmless to be shown."""
    line = printable(" ".join(line.split()))
    return line if len(line) <= 300 else line[:297] + "..."


def styled(text: str, style: str) -> str:
    """``text`` in a ``rich`` style on a terminal, and as it is everywhere else."""
    text = _clean(text)
    if not sys.stdout.isatty():
        return text
    from rich.text import Text

    console = _console()
    with console.capture() as capture:
        console.print(Text(text, style=style), soft_wrap=True, end="")
    return Styled(capture.get())


def _console() -> Console:
    from rich.console import Console

    # NO_COLOR (no-color.org) stands for no escape sequences at all: rich by itself keeps bold and dim.
    plain = bool(os.environ.get("NO_COLOR"))
    size = shutil.get_terminal_size().columns  # rich takes a dumb terminal for one of 80 columns
    return Console(width=size, highlight=False, color_system=None if plain else "auto", no_color=plain)


def write_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Sequence[str] = (),
    width: Optional[int] = None,
) -> None:
    """Draw a table: with ``rich`` on a terminal, plain aligned columns everywhere else.

    Args:
        header: the columns' titles. The last column is prose, and takes what width there is.
        rows: one text for each column.
        styles: a ``rich`` style for each row, used on a terminal only.
        width: elsewhere, the prose has lines of its own below the others, of this width; ``None`` for one line a row.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(header, rows, styles)
        return
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        last = -1 if width is not None else len(line)
        text = "  ".join(cell.ljust(size) for cell, size in zip(line[:last], widths)).rstrip()
        write(text)
        if width is not None and line is not lines[0]:
            write(wrapped(line[-1], width, "    "))


def _draw(header: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = _console()
    widths = _column_widths(header, rows, console.width)
    with console.capture() as capture:
        if widths is not None:
            table = Table(
                box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold"
            )
            for title, width in zip(header, widths):
                table.add_column(wrapped(title, width), no_wrap=True, min_width=width, max_width=width)
            for index, row in enumerate(rows):
                cells = (Text(wrapped(cell, width)) for cell, width in zip(row, widths))
                table.add_row(*cells, style=styles[index] if styles else None)
            console.print(table)
        elif (above := _shrunk(header[:-1], [row[:-1] for row in rows], console.width)) is not None:
            # too narrow for prose beside them: it has lines of its own below
            for index, line in enumerate((header, *rows)):
                style = styles[index - 1] if index and styles else "bold"
                columns = (wrapped(cell, width).split("\n") for cell, width in zip(line, above))
                for parts in itertools.zip_longest(*columns, fillvalue=""):
                    text = "  ".join(part.ljust(width) for part, width in zip(parts, above)).rstrip()
                    console.print(Text(text, style=style), soft_wrap=True)
                if line[-1]:
                    prose = Text(wrapped(line[-1], console.width, "    "), style="" if index else "bold")
                    console.print(prose, soft_wrap=True)
                if not index:
                    console.print("\N{BOX DRAWINGS LIGHT HORIZONTAL}" * console.width)
        else:  # too narrow for columns
            for index, row in enumerate(rows):
                facts = [f"{header[i].lower()}: {row[i]}" for i in range(1, len(row) - 1) if row[i]]
                console.print(Text(row[0], style="bold"), soft_wrap=True)
                for text, style in ((", ".join(facts), styles[index] if styles else ""), (row[-1], "")):
                    console.print(Text(paragraph(text, "  "), style=style), soft_wrap=True)
    write(Styled(capture.get().strip("\n")))


def _shrunk(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Optional[list[int]]:
    """Widths of columns with two spaces between them, cut down to their longest word, the widest first; ``None`` if
    they do not fit even then."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for column in sorted(range(len(header)), key=lambda column: -widths[column]):
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        if excess > 0:
            longest = max(_longest_word(line[column]) for line in lines)
            widths[column] = max(longest, widths[column] - excess)
    return widths if sum(widths) + 2 * (len(widths) - 1) <= width else None


def _column_widths(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Optional[list[int]]:
    """Widths of the columns in which no word is broken; ``None`` if there are none on a terminal of this width.

    The last column is prose and takes what is left; the others are cut down to their longest word, the widest first.
    """
    lines = [header, *rows]
    longest = [max(len(line[column]) for line in lines) for column in range(len(header))]
    words = [max(_longest_word(line[column]) for line in lines) for column in range(len(header))]
    left = width - len(header) + 1  # between two columns the box has one more
    least = [*words[:-1], max(words[-1], min(MIN_PROSE_WIDTH, longest[-1]))]
    if sum(least) + len(least) > left:
        return None
    widths = [*longest[:-1], least[-1]]
    for column in sorted(range(len(header) - 1), key=lambda column: -longest[column]):
        if sum(widths) + len(widths) > left:
            excess = sum(widths) + len(widths) - left
            widths[column] = max(words[column], widths[column] - excess)
    widths[-1] = min(longest[-1], left - len(widths) - sum(widths[:-1]))
    return widths


def _longest_word(text: str) -> int:
    words = wrapped(text, 1).split("\n")
    return max(map(len, words), default=0)


def _discard(stream: TextIO) -> None:
    """From here on output goes nowhere, including what the interpreter flushes at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError, AttributeError):
        pass
