"""Find the errors in the lines of a log, with the frames of their tracebacks.

Reads tracebacks of Python, IPython and notebooks, pytest, rich and loguru, also if their beginning is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional

from lightning_patches.cli.diagnose.frames import Frame
from lightning_patches.cli.diagnose.lines import BEGIN, Line

MAX_MESSAGE, MAX_EMPTY = 12, 3
"""Most lines of an error's message, and most empty lines at its beginning."""
MOST_ERRORS = 2000
"""Most errors that are returned. If a log has more, the last ones are returned."""
CELL = "<cell>"
"""Path of frames in a notebook."""
FOLLOW_UP_ERRORS = re.compile(
    r"(?:[\w.]*\.)?(?:ChildFailedError|ProcessRaisedException|ProcessExitedException|SignalException|CalledProcessError|"
    r"BrokenPipeError|ConnectionResetError|ConnectionError|EOFError|RayTaskError|KeyboardInterrupt|SystemExit|"
    r"DistBackendError|CancelledError|(?:Base)?ExceptionGroup)\b|.{0,200}(?:closed by peer|reset by peer|Broken pipe)|"
    r"_?queue\.Empty\b|RuntimeError: DataLoader worker \(pid\S{0,3} [\d, ]+\) exited unexpectedly",
)
"""Matches errors that follow from the end of another process: of launchers, of ranks whose peer is gone, of a
DataLoader."""

_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_IN_WORKER = "Original Traceback"
_HIDDEN = re.compile(r"\d frames? hidden|HYDRA_FULL_ERROR|skipped \d")
_BOX = re.compile(r"[─-╿❱]")
_PYTHON = re.compile(
    r'(?:> ?)?File "(?P<path>[^"]{1,1000})", line ?(?P<number>\d{1,7})(?:, ?in (?P<function>[^\n]{1,200}))?'
)
_IPYTHON = re.compile(
    r"File (?P<path>[^\s\"',][^\"',]{0,500}?):(?P<number>\d{1,7})(?:, in (?P<function>[\w.<>\[\]]{1,200}))?(?=[\s(,]|$)"
)
_OLD_IPYTHON = re.compile(
    r"(?P<path>[~/.<\w][^\s:\"',()]{0,500}?(?:\.py|>)) in "
    r"(?P<function><cell line: \d{1,7}>|[\w.<>]{1,200})(?:\(|$)"
)
_CELL = re.compile(
    r"(?:Cell )?(?:In|Input In) ?\[[\d ]{1,8}\],? (?:line (?P<number>\d{1,7})|in )"
    r"(?:, in )?(?P<function>[\w.<>]{1,200})?"
)
_PYTEST = re.compile(
    r"(?P<path>[^\s:\"',()]{1,500}\.py):(?P<number>\d{1,7}): ?(?P<rest>in [\w.<>\[\]]{1,200}$|[\w.]{1,200}$|$)"
)
_RICH = re.compile(
    r"(?P<path>(?:[A-Za-z]:)?[^\s:\"',()][^:\"',]{0,500}):(?P<number>\d{1,7}) in (?P<function>[\w.<>]{1,200})\s*$"
)
_FORMS = (_PYTHON, _IPYTHON, _CELL, _RICH, _PYTEST, _OLD_IPYTHON)
_LINE_FORM = re.compile(
    r"(?P<path>[^\s:\"',()]{1,500}\.py):(?P<number>\d{1,7}): (?P<words>[\w.]{1,200}(?:Error|Exception)\b.*)"
)
_ARROW = re.compile(r"(?:-{1,8}> ?|❱ ?)(?P<number>\d{1,7})[\s│|]+(?P<source>.*)")
_NAMES = r"StopIteration|KeyboardInterrupt|SystemExit|GeneratorExit|Abort|ReadTimeout"
ERROR = re.compile(
    rf"(?:E\s{{1,60}})?(?:[\w<>]{{1,100}}\.){{0,12}}\w{{0,100}}(?:Error|Exception|Warning|Failure|Timeout|Interrupt|Exit|{_NAMES})"
    r"(?::|\s*$|\s\()"
)
_ANY_ERROR = re.compile(r"(?:[A-Za-z_]\w{0,100}\.){0,12}[A-Za-z_]\w{0,100}: ")
_SUB_EXCEPTION = re.compile(r"\s{0,200}\+(?P<opens>-\+)?-{10,40}(?: \d{1,6} -{10,40})?$")
_DEF = re.compile(r"\s{0,16}(?:async )?def (\w{1,200})\(")


@dataclass(frozen=True, eq=False)
class Raised:
    """An error in a log.

    Args:
        first, last: indices of the first line of the traceback and of the last line of the message.
        message: index of the line on which the message begins.
        words: that line. If the message begins with a line break, also the first line of the message.
        text: the message.
        frames: frames of the traceback.
        before: the error that was being handled when this one was raised, or its cause (``raise ... from``).
        is_caused: True if ``before`` is the cause.
        is_complete: True if the log has the beginning of the traceback, all frames and the message.
        rank: prefix of the rank that raised the error.
        group: number of the exception group that contains the error; 0 for none.
    """

    first: int
    last: int
    message: int
    words: str
    text: str
    frames: tuple[Frame, ...] = ()
    before: Optional[Raised] = None
    is_caused: bool = False
    is_complete: bool = False
    rank: str = ""
    group: int = 0

    @property
    def chain(self) -> list[Raised]:
        """The earlier errors that led to this one, oldest first, and this error."""
        found: list[Raised] = []
        one: Optional[Raised] = self
        while one is not None and len(found) < 50:
            found.insert(0, one)
            one = one.before
        return found

    @property
    def type(self) -> str:
        """The name of the error's class, without the module."""
        return re.split(r"[:\s(]", self.words, maxsplit=1)[0].rpartition(".")[2]


def find(lines: Sequence[Line]) -> list[Raised]:
    ranks: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        ranks.setdefault(line.rank, []).append(index)
    groups = _groups(lines)
    if groups:
        lines = [line._replace(group=groups.get(index, 0)) for index, line in enumerate(lines)]
    found = [error for indices in ranks.values() for error in _of_rank(lines, indices)]
    return sorted(found, key=lambda error: error.first)[-MOST_ERRORS:]


def ending(raised: Sequence[Raised]) -> Optional[Raised]:
    """Return the error that ended a program: the last error in the log.

    With several ranks, it is the last error of the rank that failed first. In an exception group, it is the first
    error. Errors of launchers and of ranks whose peer is gone count only if there are no other errors.
    """
    causes = [error for error in raised if error.words and not FOLLOW_UP_ERRORS.match(error.words)]
    causes = [error for error in causes if error.frames] or causes
    if not causes:
        return next((error for error in reversed(raised) if error.words), raised[-1] if raised else None)
    if causes[-1].group:
        causes = [next(error for error in causes if error.group == causes[-1].group)]
    last_of = {error.rank: error for error in causes}
    return min(last_of.values(), key=lambda error: error.first) if len(last_of) > 1 else causes[-1]


def _groups(lines: Sequence[Line]) -> dict[int, int]:
    """Map the indices of lines in an exception group to the number of the group, except for the group's message."""
    found: dict[int, int] = {}
    depth = number = 0
    for index, line in enumerate(lines):
        mark = _SUB_EXCEPTION.match(line.text) if "+" in line.text and "----" in line.text else None
        if mark is not None and mark["opens"]:
            number += depth == 0
            depth += 1
        elif mark is not None and not any(map(str.isdigit, line.text)):
            depth = max(depth - 1, 0)
        elif depth and mark is None and line.text.strip() and "|" not in (line.raw or line.text):
            depth = 0  # the end of the group is not in the log
        elif depth:
            found[index] = number
    return found


class _Open(NamedTuple):
    """A traceback that is being read."""

    begin: int
    frames: list[Frame]
    is_complete: bool
    after: int = 0


def _of_rank(lines: Sequence[Line], indices: list[int]) -> Iterator[Raised]:
    """Find the errors in the lines of one rank."""
    last: Optional[Raised] = None
    chained: Optional[Raised] = None
    caused = False
    open_: Optional[_Open] = None
    message: Optional[int] = None  # index of pytest's first line with an E
    function = ""  # the function whose source pytest shows
    at = 0
    while at < len(indices):
        text = lines[indices[at]].text
        core = _BOX.sub(" ", text).strip()
        if open_ is not None and _HIDDEN.search(text):
            open_ = open_._replace(is_complete=False)
        if any(words in text for words in _CHAINED):
            if open_ is not None and open_.frames:
                last = _cut_off(lines, indices, open_, at, chained, caused)
                yield last
            chained, caused, open_, message = last, _CHAINED[1] in text, None, None
            at += 1
            continue
        if BEGIN in text:
            inner = _IN_WORKER in text and last is not None
            if open_ is not None and open_.frames:
                yield _cut_off(lines, indices, open_, at, chained, caused)
            outer = list(last.frames) if inner and last is not None else []
            open_ = _Open(at, outer, (last.is_complete if inner and last is not None else True))
            message = None
            at += 1
            continue
        line_form = _LINE_FORM.match(core) if ".py:" in core else None
        if line_form is not None and open_ is None:
            frame = Frame(line_form["path"], "", int(line_form["number"]))
            words, index = line_form["words"], indices[at]
            line = lines[index]
            last = Raised(index, index, index, words, words, (frame,), rank=line.rank, group=line.group)
            yield last
            at += 1
            continue
        taken = _frame(lines, indices, at, function)
        if taken is not None:
            frame, used, ends = taken
            if open_ is None:
                open_ = _Open(at, [], False)
            open_.frames.append(frame)
            function = ""
            at += used
            open_ = open_._replace(after=at)
            if ends and message is not None:
                last = _raised(lines, indices, open_, message, at, chained, caused)
                yield last
                open_, message, chained, caused = None, None, None, False
            continue
        begins = _DEF.match(text)
        function = begins[1] if begins and not function else function
        if text.startswith("E   ") and message is None and ERROR.match(core):
            message = at
            open_ = open_ or _Open(at, [], False)
            at += 1
            continue
        if (
            message is not None
            and open_ is not None
            and not text.startswith("E")
            and core.startswith(("====", "____", "----"))
        ):
            last = _raised(lines, indices, open_, message, at, chained, caused)
            yield last
            open_, message, chained, caused = None, None, None, False
            continue
        if message is None and _is_error(text, core, open_, lines, indices, at):
            opened = open_ or _Open(at, [], False)
            end = _end_of_message(lines, indices, at)
            last = _raised(lines, indices, opened, at, end, chained, caused)
            yield last
            open_, chained, caused = None, None, False
            at = end
            continue
        at += 1
    if open_ is not None and message is not None:
        yield _raised(lines, indices, open_, message, len(indices), chained, caused)
    elif open_ is not None and open_.frames:
        yield _cut_off(lines, indices, open_, len(indices), chained, caused)


def _cut_off(
    lines: Sequence[Line], indices: list[int], open_: _Open, end: int, before: Optional[Raised], caused: bool
) -> Raised:
    """Return the error of a traceback without a recognized message. The line after its last frame may be the
    message."""
    at = open_.after
    text = lines[indices[at]].text if at < end else ""
    if not text.strip() or text.startswith(("    ", "\t")):
        return _raised(lines, indices, open_, end, end, before, caused)
    stop = min(_end_of_message(lines, indices, at), end)
    return _raised(lines, indices, open_._replace(is_complete=False), at, stop, before, caused)


def _is_error(text: str, core: str, open_: Optional[_Open], lines: Sequence[Line], indices: list[int], at: int) -> bool:
    if not core or text.startswith(("    ", "\t")):
        return False
    if ERROR.match(core):
        return True
    return open_ is not None and bool(open_.frames) and not text.startswith(" ") and bool(_ANY_ERROR.match(core))


def _end_of_message(lines: Sequence[Line], indices: list[int], at: int) -> int:
    end = at + 1
    if lines[indices[at]].text.rstrip().endswith(":"):  # the message may begin with empty lines
        while end < min(len(indices), at + MAX_EMPTY) and not lines[indices[end]].text.strip():
            end += 1
    last = end + MAX_MESSAGE - 1
    while end < min(len(indices), last):
        text = lines[indices[end]].text
        core = text.strip()
        if not core or BEGIN in text or any(words in text for words in _CHAINED) or _form(core) is not None:
            break
        if ERROR.match(core) and not text.startswith((" ", "\t")):
            break
        end += 1
    return end


def _raised(
    lines: Sequence[Line],
    indices: list[int],
    open_: _Open,
    message: int,
    end: int,
    before: Optional[Raised],
    caused: bool,
) -> Raised:
    """Create the error of a traceback. Its message is from index ``message`` to ``end``; it has none if they are
    equal."""
    has_message = message < end
    index = indices[min(message, len(indices) - 1)] if has_message else indices[max(message - 1, 0)]
    words = " ".join(_BOX.sub(" ", lines[index].text).split()) if has_message else ""
    words = re.sub(r"^E\s+", "", words)
    texts = [re.sub(r"^E(?:   |$)", "", lines[one].text) for one in indices[message:end][: MAX_MESSAGE + MAX_EMPTY]]
    if words.endswith(":"):
        words += next((f" {text}" for text in (" ".join(_BOX.sub(" ", one).split()) for one in texts[1:]) if text), "")
    return Raised(
        indices[open_.begin],
        indices[max(end - 1, open_.begin)],
        index,
        words,
        "\n".join(texts),
        tuple(open_.frames),
        before,
        caused,
        open_.is_complete and has_message,
        lines[index].rank,
        lines[index].group,
    )


def _form(core: str) -> Optional[re.Match[str]]:
    if not ("File " in core or ".py" in core or "In" in core or "> in " in core):
        return None
    return next((match for match in (form.match(core) for form in _FORMS) if match is not None), None)


def _frame(lines: Sequence[Line], indices: list[int], at: int, function: str) -> Optional[tuple[Frame, int, bool]]:
    """Return the frame that begins on a line, its number of lines, and True if it is the last frame of pytest's
    output."""
    core = _BOX.sub(" ", lines[indices[at]].text).strip()
    match, used = _form(core), 1
    if match is None and _may_be_broken(lines[indices[at]].text, core):
        for more in (1, 2):
            if at + more < len(indices):
                further = _BOX.sub(" ", lines[indices[at + more]].text).strip()
                core += f" {further}" if core.endswith(" in") or further.startswith("in ") else further
                match = _RICH.match(core) or _PYTHON.match(core)
                if match is not None:
                    used = 1 + more
                    break
    if match is None:
        return None
    known = match.groupdict()
    rest = known.get("rest") or ""
    name = known.get("function") or (rest[3:] if rest.startswith("in ") else "")
    if match.re is _PYTEST and not name:
        name = function
    path = known.get("path") or CELL
    if path.startswith(("<ipython-input", "<command-")) or "ipykernel_" in path:
        path = CELL
    number, source, more = int(known.get("number") or 0), "", 0
    if match.re is _PYTEST and not rest.startswith("in ") and at > 0:
        source = _pytest_source(lines, indices, at)
    elif match.re in (_PYTHON, _PYTEST):
        source, more = _next_source(lines, indices, at + used)
    else:
        found = _arrow(lines, indices, at + used)
        if found is not None:
            number, source = number or found[0], found[1]
    name = (
        "<module>"
        if path == CELL and (not name or name.startswith("<"))
        else name.split("(")[0].rpartition(".")[2] or name
    )
    return (
        Frame(path, name.strip(), number, source),
        used + more,
        match.re is _PYTEST and bool(rest) and rest[:3] != "in ",
    )


def _may_be_broken(text: str, core: str) -> bool:
    """True if the path of a frame may be wrapped in a box."""
    begins = _BOX.search(text) is not None and core.startswith(("/", "~", "C:\\"))
    return begins and (core.endswith(" in") or (" " not in core and len(core) > 40))


def _next_source(lines: Sequence[Line], indices: list[int], at: int) -> tuple[str, int]:
    if at >= len(indices):
        return "", 0
    text = lines[indices[at]].text
    core = text.strip()
    if not text.startswith("    ") or not core or _form(core) is not None or not core.strip("~^ "):
        return "", 0
    return core, 1


def _pytest_source(lines: Sequence[Line], indices: list[int], at: int) -> str:
    for back in range(at - 1, max(at - 40, -1), -1):
        text = lines[indices[back]].text
        if text.startswith(">"):
            return text[1:].strip()
    return ""


def _arrow(lines: Sequence[Line], indices: list[int], at: int) -> Optional[tuple[int, str]]:
    for index in indices[at : at + 12]:
        text = lines[index].text
        arrow = _ARROW.match(text.strip("│ \t")) if ">" in text or "❱" in text else None
        if arrow is not None:
            return int(arrow["number"]), arrow["source"].strip().rstrip("│ ").lstrip("│ ")
        if _form(_BOX.sub(" ", text).strip()) is not None:
            return None
    return None
