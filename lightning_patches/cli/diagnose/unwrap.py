"""Extract a log from other formats: JSON, a recording, HTML or XML, a table, an escaped string.

Each step gets the numbered lines of a file and returns the lines that programs wrote, or its argument if the file has
another format. The steps are repeated, because formats can be nested, such as JSON in a column of a table.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any, List, Optional, Tuple

Numbered = List[Tuple[int, str]]
"""Lines, each with its number in the file."""

BEGIN = "Traceback (most recent call last)"
MAX_LINES = 200_000
"""Most lines that are returned. If there are more, the last ones are returned."""
MAX_ROUNDS = 4
"""Most levels of nested formats."""
MAX_DEPTH = 40
"""Most levels of JSON that are searched."""


def unwrapped(text: str, numbers: Optional[Sequence[int]] = None) -> Numbered:
    """Return the lines that programs wrote.

    Args:
        text: a file, or an excerpt of it.
        numbers: for an excerpt, the numbers of its lines in the file.
    """
    pieces = text.lstrip("\ufeff").split("\n")
    lines: Numbered = list(zip(numbers or range(1, len(pieces) + 1), pieces))
    for _ in range(MAX_ROUNDS):
        before = lines
        for step in (_json_document, _recording, _markup, _json_lines, _table, _escaped):
            lines = step(lines)
        if lines is before:
            break
    return lines


def _joined(lines: Numbered) -> str:
    return "\n".join(text for _, text in lines)


def _first(lines: Numbered) -> str:
    """Return the first line that is not blank."""
    return next((text.lstrip() for _, text in lines if text and not text.isspace()), "")


def _of_one(number: int, text: str) -> Numbered:
    """Split a text that was in one line of the file. All its lines get the number of that line."""
    return [(number, line) for line in text.split("\n")[-MAX_LINES:]]


# JSON: a document such as a notebook, or a record on each line


_OUTPUT_KEYS = ("log", "message", "msg", "text", "textPayload", "event", "line", "MESSAGE", "@message", "body", "data")
"""Keys under which loggers write a program's line."""


def _json_document(lines: Numbered) -> Numbered:
    if _first(lines)[:1] not in ("{", "[", '"'):
        return lines
    document = _parsed(_joined(lines))
    strings = [document] if isinstance(document, str) else list(_strings(document))
    return _of_one(lines[0][0], "\n".join(strings)) if strings else lines


def _json_lines(lines: Numbered) -> Numbered:
    found: Numbered = []
    is_json = False
    for number, text in lines:
        record = _parsed(text) if text.startswith("{") and text.rstrip().endswith("}") else None
        if isinstance(record, dict):
            is_json = True
            found += _of_one(number, "\n".join(_strings(record)))
        else:
            found.append((number, text))
    return found[-MAX_LINES:] if is_json else lines


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_int=lambda digits: int(digits[:18]))  # parsing a huge integer takes a long time
    except (ValueError, RecursionError):
        return None


def _strings(value: Any, key: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the output of programs in a parsed document: lines under the usual keys, and tracebacks under any key."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        if "\n" in value.rstrip("\n") or key in _OUTPUT_KEYS or (key == "item" and "\x1b[" in value):
            yield value.rstrip("\n")
    elif isinstance(value, list):
        if value and all(isinstance(one, str) for one in value) and key in ("traceback", "text", "stack_trace"):
            yield "\n".join(value)
        elif value and all(_is_timed(one) for one in value):  # asciinema's first format
            yield "".join(one[1] for one in value)
        else:
            for one in value:
                yield from _strings(one, "item", depth + 1)
    elif isinstance(value, dict):
        if isinstance(value.get("log"), str):  # Docker's format: one line of the program, and its time
            yield value["log"].rstrip("\n")
            return
        number, name = value.get("lineno"), value.get("name", value.get("function"))
        if isinstance(value.get("filename"), str) and isinstance(number, int) and isinstance(name, str):
            yield f'  File "{value["filename"]}", line {number}, in {name}'
            return
        for inner, one in value.items():
            yield from _strings(one, str(inner), depth + 1)
        if isinstance(value.get("exc_type"), str):  # structlog's format
            yield f"{value['exc_type']}: {value.get('exc_value')}"


def _is_timed(value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) == 2 and isinstance(value[0], (int, float)) and isinstance(value[1], str)
    )


# Recordings of a terminal by asciinema: [seconds, "o", output] on each line


_EVENT = re.compile(r'\s{0,8}\[\s{0,8}[\d.eE+-]{1,30},\s{0,8}"[a-z]",\s{0,8}"')


def _recording(lines: Numbered) -> Numbered:
    if not any(_EVENT.match(text) for _, text in lines[:5]):
        return lines
    found: Numbered = []
    open_: list[str] = []
    for number, text in lines:
        event = _parsed(text) if _EVENT.match(text) else None
        if not isinstance(event, list) or len(event) != 3 or event[1] != "o" or not isinstance(event[2], str):
            continue
        first, *others = event[2].split("\n")[-MAX_LINES:]
        open_.append(first)
        if others:
            found.append((number, "".join(open_)))
            found += [(number, one) for one in others[:-1]]
            open_ = others[-1:]
    return [*found, (lines[-1][0], "".join(open_))][-MAX_LINES:]


# HTML (exported notebooks) and XML (pytest's JUnit reports)


_DOCUMENT = re.compile(r"<(?:!doctype|\?xml|html|head|body|div|pre|testsuites?)\b", re.IGNORECASE)
_TAG = re.compile(r"<!\[CDATA\[|<!--|<[!?/]?(?P<name>[A-Za-z][\w:.-]{0,60})(?P<rest>[^<>]*)>")
_INLINE = re.compile("a|abbr|b|code|em|font|i|mark|s|samp|small|span|strong|tt|u|var")
_ENDS = {"<![CDATA[": "]]>", "<!--": "-->", "script": "</script", "style": "</style"}
_PYTHON = re.compile(r"<(?:module|lambda|locals|genexpr|\w{3,4}comp|stdin|string|frozen|ipython|cell|command)\b")
"""Names in tracebacks that look like tags, if a page does not escape them."""
_ATTRIBUTE = re.compile(r'="([^"]*(?:Error|Exception|Traceback)[^"]*)"')
"""Attributes with an error: the message in JUnit's reports, the complete output in pytest-html's."""


def _markup(lines: Numbered) -> Numbered:
    if not _DOCUMENT.match(_first(lines)):
        return lines
    text = _joined(lines)
    found: list[str] = []
    missing: set[str] = set()
    at = 0
    while True:
        tag = _TAG.search(text, at)
        if tag is None:
            break
        found.append(text[at : tag.start()])
        at = tag.end()
        if _PYTHON.match(tag.group()):
            found.append(tag.group())
            continue
        name = (tag["name"] or "").lower()
        closing = _ENDS.get(name or tag.group())
        if closing is not None and not tag.group().startswith("</") and closing not in missing:
            end = text.find(closing, at)
            if end < 0:
                missing.add(closing)
            elif closing == "]]>":
                found.append(f"\r{html.escape(text[at:end])}\r")
                at = end + len(closing)
                continue
            else:
                at = end
        found.append("\n" * text.count("\n", tag.start(), at))
        if not _INLINE.fullmatch(name):
            found.append("\r")
            if '="' in (tag["rest"] or ""):
                found += [f"{value}\r" for value in _ATTRIBUTE.findall(tag["rest"]) if " " in value]
    found.append(text[at:])
    rows = "".join(found).split("\n")
    numbers = [number for number, _ in lines]
    return [
        (numbers[min(index, len(numbers) - 1)], part)
        for index, row in enumerate(rows)
        for part in re.split("[\r\n]", html.unescape(row))
    ][-MAX_LINES:]


# Tables: columns between tabs, or CSV


_QUOTED = re.compile(r'(?:^|([\t,;]))"[^"]*$')
_FRAME = re.compile(r"File \S|Cell In|<ipython")


def _table(lines: Numbered) -> Numbered:
    """Return the column in which a traceback begins."""
    at = next((index for index, (_, text) in enumerate(lines) if BEGIN in text), -1)
    if at < 0:
        return lines
    before, _, after = lines[at][1].partition(BEGIN)
    if after.startswith((":\\", "\\")):  # the column has an escaped string
        return lines
    quoted = _QUOTED.search(before)
    delimiter = quoted[1] if quoted is not None else before[-1:]
    if quoted is not None and not delimiter:
        delimiter = next((one for one in "\t;," if f'"{one}' in _joined(lines[at : at + 200])), ",")
    if quoted is not None or delimiter in (",", ";"):
        rows = _read_csv(lines, delimiter)
    elif "\t" in before.lstrip("\t") or "\t" in after:
        rows = _split_at_tabs(lines, before.count("\t"), before.count("\t") + after.count("\t"))
    else:
        return lines
    begin = next((index for index, (_, text) in enumerate(rows) if BEGIN in text), 0)
    is_table = any(_FRAME.search(text) for _, text in rows[begin : begin + 4])
    return rows[-MAX_LINES:] if is_table and rows != lines else lines


def _split_at_tabs(lines: Numbered, column: int, last: int) -> Numbered:
    found = []
    for number, text in lines:
        parts = text.split("\t")
        end = len(parts) - (last - column)
        cell = "\t".join(parts[column:end]) if len(parts) > last else text
        if cell[:1] == cell[-1:] == '"':
            cell = cell[1:-1].replace('""', '"')
        found.append((number, cell))
    return found


def _read_csv(lines: Numbered, delimiter: str) -> Numbered:
    limit = csv.field_size_limit(1 << 30)
    try:
        reader = csv.reader((f"{text}\n" for _, text in lines), delimiter=delimiter)
        rows, begin = [], 0
        for row in reader:
            rows.append((begin, row))
            begin = reader.line_num
    except csv.Error:
        return lines
    finally:
        csv.field_size_limit(limit)
    columns = (index for _, row in rows for index, cell in enumerate(row) if BEGIN in cell)
    column = next(columns, 0)
    found = []
    for begin, row in rows:
        cell = row[column] if column < len(row) else delimiter.join(row)
        for offset, text in enumerate(cell.rstrip("\n").split("\n")):
            found.append((lines[min(begin + offset, len(lines) - 1)][0], text))
    return found


# Escaped strings: a Python repr, or a string in JSON's syntax outside of a document


_ESCAPED = (
    re.compile(r"Traceback \(most recent call last\):?(?:\\+[rn]|[\"'],?\s+[bru]?[\"'](?:\\[ux]|\s*File |Cell|-{3}))"),
    re.compile(r"File \\*[\"'][^\"'\n]{1,1000}[\"'], line \d{1,7}(?:, in [^\\\n\"']{1,200})?\\+[rn]"),
)
_BETWEEN = re.compile(r"[\s,(\[]{0,200}[bruBRU]{0,2}(?=[\"'])")
"""Text between two strings of a list."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.)|$)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "", "f": ""}
_MAX_QUOTES = 50
"""Most quotes on a line that are tried as the beginning of a string."""


def _escaped(lines: Numbered) -> Numbered:
    """Undo one level of escapes in strings with a traceback, and in the strings directly after them."""
    text = _joined(lines)
    found = _Spliced(text)
    places = (match.start() for match in merge(*(one.finditer(text) for one in _ESCAPED), key=lambda one: one.start()))
    for place in places:
        if place < found.at:
            continue
        begin = max(text.rfind("\n", found.at, place) + 1, found.at)
        line = _end_of_line(text, place)
        opening = _opening(text, begin, place, line)
        if opening < 0:  # no quotes around it, as in a column of a table
            found.copy(begin)
            found.put(_unescape(text[begin:line].replace("\t", "\n")), line)
            continue
        found.copy(opening)
        found.end_line()
        while text[found.at : found.at + 1] in ('"', "'"):
            line = line if found.at < line else _end_of_line(text, found.at)
            end = _closing(text, found.at, line)
            found.put(_unescape(text[found.at + 1 : end]), end + (text[end : end + 1] != "\n"))
            following = _BETWEEN.match(text, found.at)
            if following is None:
                break
            if "," in following.group():
                found.end_line()
            found.at = following.end()
        found.end_line()
    return found.finish([number for number, _ in lines])[-MAX_LINES:] if found.at else lines


class _Spliced:
    """A copy of a text with replaced strings. Each line of the copy has the number of the original line."""

    def __init__(self, text: str) -> None:
        self.at = 0
        self._text = text
        self._rows: list[tuple[int, list[str]]] = [(0, [])]
        self._row = self._counted = 0

    def _row_here(self) -> int:
        self._row += self._text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._row

    def copy(self, end: int) -> None:
        """Copy the text up to an index."""
        row = self._row_here()
        first, *others = self._text[self.at : end].split("\n")
        self._rows[-1][1].append(first)
        self._rows += [(row + more, [one]) for more, one in enumerate(others, 1)]
        self.at = end

    def put(self, replacement: str, end: int) -> None:
        """Replace the text up to an index."""
        row = self._row_here()
        first, *others = replacement.split("\n")[-MAX_LINES:]
        self._rows[-1][1].append(first)
        self._rows += [(row, [one]) for one in others]
        self.at = end

    def end_line(self) -> None:
        if any(self._rows[-1][1]):
            self._rows.append((self._row_here(), []))

    def finish(self, numbers: Sequence[int]) -> Numbered:
        self.copy(len(self._text))
        return [(numbers[min(row, len(numbers) - 1)], "".join(parts)) for row, parts in self._rows]


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _opening(text: str, begin: int, place: int, line: int) -> int:
    """Return the index of the quote that begins the string around a place, or a negative number."""
    at = place
    for _ in range(_MAX_QUOTES):
        at = max(text.rfind('"', begin, at), text.rfind("'", begin, at))
        if at < 0:
            break
        before = text[max(at - 3, begin) : at]
        if (
            not before.endswith("\\")
            and re.search(r"(?:^|\W)[bruBRU]{0,2}$", before)
            and _closing(text, at, line) > place
        ):
            return at
    return -1


def _closing(text: str, opening: int, line: int) -> int:
    """Return the index of the quote that ends a string, or of the end of the line."""
    at = opening
    while True:
        at = text.find(text[opening], at + 1, line)
        if at < 0:
            return line
        backslashes = at
        while text[backslashes - 1] == "\\":
            backslashes -= 1
        if (at - backslashes) % 2 == 0:
            return at


def _unescape(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape[1] or escape[2]
        return chr(int(code, 16)) if code else _LETTERS.get(escape[3], escape[3]) if escape[3] else ""

    found = _ESCAPE.sub(character, text)
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
