"""Parse lines of requirements files and of shell commands."""

from __future__ import annotations

import re
from typing import Iterator

from lightning_patches.cli.audit.sources.items import PROJECT_FILES, Gap, Group, Include, Item, Source, Spec

WITH_FILE = ("-r", "-c", "--requirement", "--constraint")
"""Options of pip that include a file."""
EDITABLE = ("-e", "--editable")
_HAS_PATCHES = re.compile(r"lightning[-_]patches|LIGHTNING_PATCHES[\s=:]{1,2}[\"']?(?!0|off|false|none)")


def uses_patches(text: str) -> Iterator[Spec]:
    """Yield a requirement of lightning-patches if a text installs it or starts a program with it."""
    if _HAS_PATCHES.search(text):
        yield Spec("lightning-patches")


def logical_lines(lines: list[str], begin: int = 0) -> Iterator[tuple[int, str]]:
    """Join each line that ends in a backslash with the next line. Yield the number of the first line, and the text.

    Args:
        lines: the lines.
        begin: the number of earlier lines.
    """
    joined: list[str] = []
    first = begin + 1
    for number, line in enumerate(lines, begin + 1):
        first = first if joined else number
        if line.endswith("\\"):
            joined.append(line[:-1])
            continue
        yield first, " ".join([*joined, line])
        joined = []
    if joined:
        yield first, " ".join(joined)


def read_pip_line(line: str, number: int, source: Source, group: Group = ()) -> Iterator[Item]:
    """Read a line of a requirements file. Skip paths and other options of pip.

    Args:
        line: the line.
        number: its number, from 1.
        source: the file.
        group: the group of the line's requirements.
    """
    line = _without_comment(line)
    option, value = option_of(line)
    if option in WITH_FILE:
        value = re.sub(r"^file:(?!/)", "", value)
        if "://" in value:
            yield Gap(f"{source.path}, line {number}: the included file", "is a URL, and was not downloaded")
        else:
            yield Include(source.beside(value), source.place, number, group, is_requirements_file=True)
        return
    line = _without_options(value if option in EDITABLE else line)
    if is_directory(line):
        files = source.place.existing(source.beside(line.partition("[")[0]), PROJECT_FILES)
        yield from (Include(path, source.place, number, group) for path in files)
    elif line:
        yield Spec(line, number, group=group, is_line=True)


def is_directory(text: str) -> bool:
    """True if pip installs the project of a directory for this text."""
    return (
        (text.startswith((".", "/", "~")) or re.fullmatch(r"[\w.-]+(?:/[\w.-]+)+/?(?:\[[\w,-]+\])?", text) is not None)
        and " " not in text
        and not text.endswith((".whl", ".gz", ".zip"))
    )


def is_path(line: str) -> bool:
    """True if a line that is not a requirement is a path, a URL or an option."""
    first = line.split()[0]
    return line.startswith(("-", ".")) or "://" in first or re.search(r"[/\\]", first) is not None


def _without_comment(line: str) -> str:
    if line.startswith("#"):
        return ""
    return (re.split(r"\s#", line, maxsplit=1)[0] if "#" in line else line).strip()


def _without_options(line: str) -> str:
    return re.split(r"\s-", line, maxsplit=1)[0].strip() if " -" in line or "\t-" in line else line


def option_of(line: str) -> tuple[str, str]:
    """Split ``-r x``, ``-rx`` or ``--requirement=x`` into option and value. Both are "" for other texts."""
    for option in (*WITH_FILE, *EDITABLE) if line.startswith("-") else ():
        rest = line[len(option) :]
        if line.startswith(option) and (rest[:1] in (" ", "\t", "=") or (rest and option[1] != "-")):
            return option, rest.lstrip(" \t=").strip("'\"")
    return "", ""
