"""Extract a log from other formats: JSON, HTML or XML, an escaped string, the repr of an exception.

Each step gets the numbered lines of a file and returns the lines that programs wrote, or its argument if the file has
another format. The steps are repeated, because formats can be nested, such as JSON in Docker's JSON.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
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
        for step in (_json_document, _markup, _json_lines, _escaped, _exceptions):
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
    """Read a record on each line, or a string, as in an excerpt of a notebook."""
    found: Numbered = []
    for number, text in lines:
        ends = text[:1] + text.rstrip()[-1:]
        record = _parsed(text.strip().rstrip(",")) if ends == "{}" or text.lstrip()[:1] == '"' else None
        strings = [record.rstrip("\n")] if isinstance(record, str) else list(_strings(record))
        found += _of_one(number, "\n".join(strings)) if isinstance(record, (str, dict)) else [(number, text)]
    return found[-MAX_LINES:] if found != lines else lines


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
        else:
            for one in value:
                yield from _strings(one, "item", depth + 1)
    elif isinstance(value, dict):
        yield from _strings_of_record(value, depth)


def _strings_of_record(record: dict[str, Any], depth: int) -> Iterator[str]:
    if isinstance(record.get("log"), str):  # Docker's format: one line of the program, and its time
        yield record["log"].rstrip("\n")
        return
    number, name = record.get("lineno"), record.get("name", record.get("function"))
    if isinstance(record.get("filename"), str) and isinstance(number, int) and isinstance(name, str):
        yield f'  File "{record["filename"]}", line {number}, in {name}'
        return
    for key, value in record.items():
        yield from _strings(value, str(key), depth + 1)
    if isinstance(record.get("exc_type"), str):  # structlog's format
        yield f"{record['exc_type']}: {record.get('exc_value')}"


# HTML (exported notebooks) and XML (pytest's JUnit reports)


_DOCUMENT = re.compile(r"<(?:!doctype|\?xml|html|head|body|div|pre|testsuites?)\b", re.IGNORECASE)
_TAG = re.compile(r"<!\[CDATA\[|\]\]>|<[!?/]?(?P<name>[A-Za-z][\w:.-]{0,60})(?P<rest>[^<>]*)>")
_INLINE = re.compile("a|abbr|b|code|em|font|i|mark|s|samp|small|span|strong|tt|u|var")
_PYTHON = re.compile(r"<(?:module|lambda|locals|genexpr|\w{3,4}comp|stdin|string|frozen|ipython|cell|command)\b")
"""Names in tracebacks that look like tags, if a page does not escape them."""
_ATTRIBUTE = re.compile(r'="([^"]*(?:Error|Exception|Traceback)[^"]*)"')
"""Attributes with an error: the message in JUnit's reports, the complete output in pytest-html's."""


def _markup(lines: Numbered) -> Numbered:
    if not _DOCUMENT.match(_first(lines)):
        return lines
    rows = _TAG.sub(_without_tag, _joined(lines)).split("\n")
    return [(number, part) for (number, _), row in zip(lines, rows) for part in re.split("[\r\n]", html.unescape(row))][
        -MAX_LINES:
    ]


def _without_tag(tag: re.Match[str]) -> str:
    """Return the text that replaces a tag: its errors, with as many line breaks as the tag has."""
    if _PYTHON.match(tag.group()):
        return tag.group()
    if _INLINE.fullmatch((tag["name"] or "").lower()):
        return "\n" * tag.group().count("\n")
    values = [value for value in _ATTRIBUTE.findall(tag["rest"] or "") if " " in value]
    return "\r".join(["\n" * tag.group().count("\n"), *(value.replace("\n", "\r") for value in values), ""])


# Escaped strings: a Python repr, or a string in JSON's syntax outside of a document


_ESCAPED = re.compile(
    r"Traceback \(most recent call last\):?\\+[rn]"
    r"|File \\*[\"'][^\"'\n]{1,1000}[\"'], line \d{1,7}(?:, in [^\\\n\"']{1,200})?\\+[rn]"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.)|$)")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "", "f": ""}


def _escaped(lines: Numbered) -> Numbered:
    """Undo one level of escapes in lines with a traceback."""
    if not any(_ESCAPED.search(text) for _, text in lines):
        return lines
    return [
        part
        for number, text in lines
        for part in (_of_one(number, _unescape(text)) if _ESCAPED.search(text) else [(number, text)])
    ][-MAX_LINES:]


def _unescape(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape[1] or escape[2]
        return chr(int(code, 16)) if code else _LETTERS.get(escape[3], escape[3]) if escape[3] else ""

    found = _ESCAPE.sub(character, text)
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# The repr of an exception: `ValueError('...')` or `exception=ValueError('...')`


_EXCEPTION = re.compile(
    r"(?P<before>|[^\s#].{0,200}?(?:exception=|error=|: ))"
    r"(?P<name>(?:[A-Za-z_]\w{0,100}\.){0,12}\w{0,100}(?:Error|Exception))"
    r"\((?:(?P<number>\d{1,4}), )?(?P<text>'.*'|\".*\"),?\)[>)\]]{0,3}\s*$"
)


def _exceptions(lines: Numbered) -> Numbered:
    """Replace the repr of an exception by the lines that its traceback ends with."""
    found: Numbered = []
    for number, text in lines:
        match = _EXCEPTION.match(text) if "(" in text and len(text) < 8192 and "raise " not in text else None
        if match is None:
            found.append((number, text))
            continue
        message = match["text"] if match["name"].endswith("KeyError") else _unescape(match["text"][1:-1])
        errno = f"[Errno {match['number']}] " if match["number"] else ""
        found += [(number, match["before"])] * bool(match["before"].strip())
        found += _of_one(number, f"{match['name']}: {errno}{message}")
    return found[-MAX_LINES:] if len(found) != len(lines) or found != lines else lines
