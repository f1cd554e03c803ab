"""How commands write: text that survives a closed pipe, tables that suit a terminal or a pipe."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

MAX_TEXT_WIDTH = 100
MIN_PROSE_WIDTH = 24
MAX_FACT_WIDTH = 18


def prepare() -> None:
    """A character that the terminal's encoding lacks must not end a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def finish() -> None:
    """Flush now, where a closed pipe can still be dealt with, and not in the interpreter's shutdown."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard()
    except (ValueError, AttributeError):
        pass  # closed, or there never was one


def write(text: str = "") -> None:
    """Write a line, or several. A reader that went away is no error: the exit status stays the command's own."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _discard()


def write_json(data: Any) -> None:
    write(json.dumps(data, indent=2))


def paragraph(text: str, indent: str = "") -> str:
    """``text`` wrapped to the terminal, or on one line when piped, so that ``grep`` sees whole sentences."""
    if not sys.stdout.isatty():
        return indent + " ".join(text.split())
    width = min(shutil.get_terminal_size().columns, MAX_TEXT_WIDTH)
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False)


def write_table(header: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str] = ()) -> None:
    """Draw a table: with ``rich`` on a terminal, plain aligned columns of full width everywhere else.

    Args:
        header: the columns' titles.
        rows: one text for each column.
        styles: a ``rich`` style for each row, used on a terminal only.
    """
    if sys.stdout.isatty():
        _draw(header, rows, styles)
        return
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        write("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def _draw(header: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    widths = [max(len(line[column]) for line in [header, *rows]) for column in range(len(header))]
    prose = max(range(1, len(header)), key=widths.__getitem__)
    broken = {index for index in range(1, len(header)) if index == prose or widths[index] > MAX_FACT_WIDTH}
    for index in broken:  # what may be broken over lines needs only so much; everything else stays whole
        widths[index] = min(widths[index], MIN_PROSE_WIDTH if index == prose else MAX_FACT_WIDTH)
    console = Console(highlight=False)
    with console.capture() as capture:
        if sum(widths) + 2 * len(widths) <= console.width:
            table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
            for index, title in enumerate(header):
                table.add_column(title, no_wrap=index not in broken, min_width=widths[index])
            for index, row in enumerate(rows):
                table.add_row(*(Text(cell) for cell in row), style=styles[index] if styles else None)
            console.print(table)
        else:  # too narrow for columns
            for index, row in enumerate(rows):
                style = styles[index] if styles else ""
                facts = [f"{header[i].lower()} {row[i]}" for i in range(1, len(row)) if i != prose and row[i]]
                console.print(Text(row[0], style="bold"), soft_wrap=True)
                for text in (", ".join(facts), row[prose]):
                    console.print(Text(paragraph(text, "  "), style=style), soft_wrap=True)
    write(capture.get().rstrip("\n"))


def _discard() -> None:
    """From here on output goes nowhere, also what the interpreter flushes at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass
