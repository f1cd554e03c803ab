"""Find the errors in the lines of a log, with the frames of their tracebacks.

Reads tracebacks of Python, IPython and notebooks, pytest, rich and loguru, also if their beginning is missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    r"DistBackendError|CancelledError|SIGTERMException|(?:Base)?ExceptionGroup)\b|"
    r".{0,200}(?:closed by peer|reset by peer|Broken pipe)|"
    r"_?queue\.Empty\b|RuntimeError: DataLoader worker \(pid\S{0,3} [\d, ]+\) exited unexpectedly"
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
    found = [error for indices in ranks.values() for error in _Reader(lines, indices).read()]
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


class _Reader:
    """Find the errors in the lines of one rank.

    Each of the methods in ``steps`` reads what begins on the current line, and returns True if it has read something.
    """

    def __init__(self, lines: Sequence[Line], indices: list[int]) -> None:
        self._lines, self._indices = lines, indices
        self._at = 0
        self._text = self._core = ""  # the current line, and the same without a box around it
        self._found: list[Raised] = []
        self._open: Optional[_Open] = None
        self._message: Optional[int] = None  # index of pytest's first line with an E
        self._before: Optional[Raised] = None
        self._is_caused = False
        self._function = ""  # the function whose source pytest shows

    def read(self) -> list[Raised]:
        steps = (self._chain, self._begin, self._one_line, self._frame, self._mark, self._end_mark, self._error)
        while self._at < len(self._indices):
            self._text = self._lines[self._indices[self._at]].text
            self._core = _BOX.sub(" ", self._text).strip()
            if self._open is not None and _HIDDEN.search(self._text):
                self._open = self._open._replace(is_complete=False)
            if not any(step() for step in steps):
                self._at += 1
        if self._open is not None and self._message is not None:
            self._close(self._message)
        self._cut_off()
        return self._found

    def _chain(self) -> bool:
        """Read the line between an error and the error that it led to."""
        if not any(words in self._text for words in _CHAINED):
            return False
        self._cut_off()
        self._before = self._found[-1] if self._found else None
        self._is_caused = _CHAINED[1] in self._text
        self._open = self._message = None
        self._at += 1
        return True

    def _begin(self) -> bool:
        """Read the first line of a traceback. The frames of a DataLoader's worker follow those of its main process."""
        if BEGIN not in self._text:
            return False
        outer = self._found[-1] if _IN_WORKER in self._text and self._found else None
        self._cut_off()
        self._open = _Open(self._at, list(outer.frames) if outer else [], outer.is_complete if outer else True)
        self._message = None
        self._at += 1
        return True

    def _one_line(self) -> bool:
        """Read an error in one line with its file."""
        form = _LINE_FORM.match(self._core) if ".py:" in self._core and self._open is None else None
        if form is None:
            return False
        index = self._indices[self._at]
        line, frame = self._lines[index], Frame(form["path"], "", int(form["number"]))
        words = form["words"]
        self._found.append(Raised(index, index, index, words, words, (frame,), rank=line.rank, group=line.group))
        self._at += 1
        return True

    def _frame(self) -> bool:
        taken = _frame(self._lines, self._indices, self._at, self._function)
        if taken is None:
            begins = _DEF.match(self._text)
            self._function = self._function or (begins[1] if begins else "")
            return False
        frame, used, is_last = taken
        open_ = self._open or _Open(self._at, [], False)
        open_.frames.append(frame)
        self._function = ""
        self._at += used
        self._open = open_._replace(after=self._at)
        if is_last and self._message is not None:
            self._close(self._message)
        return True

    def _mark(self) -> bool:
        """Read pytest's first line of a message."""
        if not self._text.startswith("E   ") or self._message is not None or not ERROR.match(self._core):
            return False
        self._message = self._at
        self._open = self._open or _Open(self._at, [], False)
        self._at += 1
        return True

    def _end_mark(self) -> bool:
        """Read pytest's line after a message."""
        is_end = not self._text.startswith("E") and self._core.startswith(("====", "____", "----"))
        if self._message is None or self._open is None or not is_end:
            return False
        self._close(self._message)
        return True

    def _error(self) -> bool:
        """Read a message."""
        has_frames = self._open is not None and bool(self._open.frames)
        if self._message is not None or not _is_error(self._text, self._core, has_frames):
            return False
        begin, self._at = self._at, _end_of_message(self._lines, self._indices, self._at)
        self._close(begin)
        return True

    def _close(self, message: int) -> None:
        """Add the error whose message is from an index to the current line."""
        open_ = self._open or _Open(message, [], False)
        self._add(open_, message, self._at)
        self._open = self._message = self._before = None
        self._is_caused = False

    def _cut_off(self) -> None:
        """Add the error of a traceback without a recognized message. The line after its last frame may be the
        message."""
        if self._open is None or not self._open.frames:
            return
        at, end = self._open.after, self._at
        text = self._lines[self._indices[at]].text if at < end else ""
        if not text.strip() or text.startswith(("    ", "\t")):
            self._add(self._open, end, end)
        else:
            stop = min(_end_of_message(self._lines, self._indices, at), end)
            self._add(self._open._replace(is_complete=False), at, stop)

    def _add(self, open_: _Open, message: int, end: int) -> None:
        """Add an error. Its message is from index ``message`` to ``end``; it has none if they are equal."""
        lines, indices = self._lines, self._indices
        has_message = message < end
        index = indices[min(message, len(indices) - 1)] if has_message else indices[max(message - 1, 0)]
        first = " ".join(_BOX.sub(" ", lines[index].text).split()) if has_message else ""
        words = re.sub(r"^E\s+", "", first)
        texts = [re.sub(r"^E(?:   |$)", "", lines[one].text) for one in indices[message:end][: MAX_MESSAGE + MAX_EMPTY]]
        if words.endswith(":"):
            more = (" ".join(_BOX.sub(" ", text).split()) for text in texts[1:])
            words += next((f" {text}" for text in more if text), "")
        self._found.append(
            Raised(
                indices[open_.begin],
                indices[max(end - 1, open_.begin)],
                index,
                words,
                "\n".join(texts),
                tuple(open_.frames),
                self._before,
                self._is_caused,
                open_.is_complete and has_message,
                lines[index].rank,
                lines[index].group,
            )
        )


def _is_error(text: str, core: str, has_frames: bool) -> bool:
    """True if a line is the first line of a message."""
    if not core or text.startswith(("    ", "\t")):
        return False
    return bool(ERROR.match(core)) or (has_frames and not text.startswith(" ") and bool(_ANY_ERROR.match(core)))


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


def _form(core: str) -> Optional[re.Match[str]]:
    if not ("File " in core or ".py" in core or "In" in core or "> in " in core):
        return None
    return next((match for match in (form.match(core) for form in _FORMS) if match is not None), None)


def _frame(lines: Sequence[Line], indices: list[int], at: int, function: str) -> Optional[tuple[Frame, int, bool]]:
    """Return the frame that begins on a line, its number of lines, and True if it is the last frame of pytest's
    output."""
    match, used = _joined_form(lines, indices, at)
    if match is None:
        return None
    known = match.groupdict()
    rest = known.get("rest") or ""
    is_in = rest.startswith("in ")
    name = known.get("function") or (rest[3:] if is_in else function if match.re is _PYTEST else "")
    path = known.get("path") or CELL
    if path.startswith(("<ipython-input", "<command-")) or "ipykernel_" in path:
        path = CELL
    number, source, more = int(known.get("number") or 0), "", 0
    if match.re is _PYTEST and not is_in and at > 0:
        source = _pytest_source(lines, indices, at)
    elif match.re in (_PYTHON, _PYTEST):
        source, more = _next_source(lines, indices, at + used)
    else:
        arrow = _arrow(lines, indices, at + used) or (0, "")
        number, source = number or arrow[0], arrow[1]
    is_last = match.re is _PYTEST and bool(rest) and not is_in
    return Frame(path, _function_name(path, name), number, source), used + more, is_last


def _function_name(path: str, name: str) -> str:
    if path == CELL and (not name or name.startswith("<")):
        return "<module>"
    return (name.split("(")[0].rpartition(".")[2] or name).strip()


def _joined_form(lines: Sequence[Line], indices: list[int], at: int) -> tuple[Optional[re.Match[str]], int]:
    """Return the match of a frame's form, and the number of lines over which a box has wrapped it."""
    core = _BOX.sub(" ", lines[indices[at]].text).strip()
    match = _form(core)
    if match is not None or not _may_be_broken(lines[indices[at]].text, core):
        return match, 1
    for used, index in enumerate(indices[at + 1 : at + 3], 2):
        further = _BOX.sub(" ", lines[index].text).strip()
        core += f" {further}" if core.endswith(" in") or further.startswith("in ") else further
        match = _RICH.match(core) or _PYTHON.match(core)
        if match is not None:
            return match, used
    return None, 1


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
