"""Read a traceback or a log, and tell which known bug of Lightning it shows and what to do about it.

  lightning-patches diagnose train.log rank1.log.gz  logs and tracebacks; - is standard input
  lightning-patches diagnose -- python train.py      run it, and explain its end
  lightning-patches diagnose "epoch 0 is too short"  in words: many bugs have no message
  lightning-patches diagnose hangs/                  reports of the hang watch
  lightning-patches diagnose train.py                what a script for 1.x uses that 2.x does not have

Colours, rank prefixes, time stamps, progress bars, frames of boxes, paths, line numbers and device numbers make no
difference. A bug is found when message, traceback and release agree; otherwise it is possible, and what would tell for
sure is shown. Of several errors the first one of a chain is the cause; what followed from it is only named.

What is found is checked against the Lightning that is installed here, or against --requirement where the log comes from
another machine. A bug that this release does not have is named, and does not count as a match.

With --json, one object; a command's own standard output then goes to standard error. Keys are only ever added:
  schema   1
  file     the name, or "-"; files has all of them
  matches  [{name, title, group, summary, symptom, file, line (number in the file), text (of that line), kind ("found",
           "possible", "follows" from another error, "ruled out"), cause (it is the one), certain, ruled_out,
           verdicts [{distribution, version, verdict, reason}], would_tell, advice, fixed_in (null: never), patched
           (there is a patch), issues, pull_requests}], the cause first
  error    the first error of the log, if that is no known bug and what is found followed from it
  start    {file, line, text, ranks (that say that they join), world_size, words}, where the log ends before all ranks
           have found each other; no known bug, and so no match; else null
  hangs    [{file, verdict, do, count (of reports in the file), ranks}], the last report of each file of the hang watch
  closing  the last line: what to do
  ok       the exit status is 0

exit status: 0 something matches, 1 nothing does, 2 the command line or the file is wrong; with -- the program's own.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any, Optional, Union

from lightning_patches import patches as catalogue
from lightning_patches.cli import (
    NOT_APPLIED,
    OK,
    UsageError,
    _calls,
    _describe,
    _log,
    _output,
    _records,
    _removed,
    _settings,
    _start,
    audit,
    autostart,
)
from lightning_patches.cli._log import Raised, Text, prepare
from lightning_patches.engine import gate
from lightning_patches.engine.installed import find_installed
from lightning_patches.patch import Patch
from lightning_patches.ranks.hang import _files as hang_files
from lightning_patches.removed import Removed
from lightning_patches.unpatched import FEATURES, UNPATCHED, Feature, Unpatched

HELP = "find the known bug in a traceback or a log, and what to do about it"
PROGRAM_METAVAR = "-- COMMAND ..."
USAGE = f"""\
lightning-patches diagnose [--requirement SPEC] [--json] FILE|WORDS ...
       lightning-patches diagnose [--requirement SPEC] [--json] {PROGRAM_METAVAR}"""

MAX_PROSE = 600
"""Characters up to which a text without an error may be somebody's description of what happened."""
SOME_PROGRAM = "train.py"
MAX_OCCURRENCES = 50
"""Places of one symptom that are looked at."""

_NAMESPACE_PATHS = {
    "lightning": re.compile(r"(?:^|[/\\])lightning[/\\](?:pytorch|fabric)[/\\]"),
    "pytorch_lightning": re.compile(r"(?:^|[/\\])(?:pytorch_lightning|lightning_fabric)[/\\]"),
}
_PATCHES_PATH = re.compile(r"[/\\]lightning_patches[/\\]patches[/\\]")
_INSTALLED = re.compile(r"[/\\](?:(?:site|dist)-packages|lib[/\\]python[\d.]*)[/\\]|^<")
_ADVISORY = re.compile(r"(?:CVE|GHSA|PYSEC)-")
_LOGGED = re.compile(r"\w(?:error|exception):|\w: \d")
"""What a log has, and a description has not."""
_MORE_MEMORY = (
    "Give the job more memory, or make it need less: fewer workers, ranks that load in turns (`rank_by_rank`)."
)
_ON_HANGS = (
    (
        ("OOM killer",),
        _MORE_MEMORY,
    ),
    ((" died (",), "Look at what that rank itself has printed last, and at its node's kernel log (`dmesg`)."),
    (("ended with an error",), "Fix that error: the other ranks are only waiting for that rank."),
    (("never began",), "Look at the launcher: no process was started for that rank, or it ended at once."),
    (
        ("is not watched", "are not watched"),
        "Start every rank with LIGHTNING_PATCHES_HANG_TIMEOUT, and look at that one by hand.",
    ),
    (
        ("do not answer", "does not answer"),
        "That process runs no Python: its state and its stack in the report say why.",
    ),
    (("at the program's end",), "Something that runs at exit does not return: the report has its stack."),
    (
        ("has left", "have left"),
        "That rank's program came to its end before the others: it had less data, or left a loop early.",
    ),
    (
        ("nobody is missing",),
        "All ranks are there: look at the network between them (interfaces, firewalls, NCCL_DEBUG=INFO).",
    ),
    (
        ("has not moved", "have not moved", "made no progress"),
        "Look at the line where it stands: the report has its whole "
        "stack, and those of the processes that it has started.",
    ),
    (("works", "work,"), "That rank is only slow. Let the others wait longer, or share the work out."),
    (("",), "Ranks are in different collectives: look for a branch that not all of them take."),
)
_IN_WORDS = (
    "If the program ends well but does something wrong, say what in words, such as "
    '`lightning-patches diagnose "epoch 0 is too short"`.'
)
_WITHOUT_ERROR = f" There is no traceback in it: were the errors written to it as well (`2>&1`)? {_IN_WORDS}"
_UNKNOWN_WORDS = "No known bug is described like that; try other words, or give the log."
_WATCHED = "`LIGHTNING_PATCHES_HANG_TIMEOUT=300 lightning-patches run {}`"
_FINDS_OUT = (
    f"{_WATCHED} tells after 300 seconds which rank is missing, and where it is. `lightning-patches doctor`, run where "
    "it starts, looks at launcher variables and ports."
)
_STANDS_STILL = re.compile(
    r"\b(?:hangs?|hung|hanging|deadlock\w*|st(?:ands?|ood|anding) still|nothing happens)\b|卡住|卡死"
)
"""Somebody's words for a hang."""
_MAY_STAND_STILL = re.compile(r"\b(?:stuck|freezes?|frozen)\b")
_NO_PROGRAM = re.compile(
    r"\b(?:layers?|param\w*|weights?|(?:batch ?)?norms?|batchnorm\w*|backbone|encoder|loss|losses|learning rate|lr|"
    r"accuracy|metrics?)\b"
)
"""What else is stuck or frozen."""
_WITHOUT = ("not-affected", "fixed-upstream")
_KINDS = ("found", "possible", "follows", "ruled out")

Record = Union[Patch, Unpatched, Removed, Feature]


@dataclass
class Match:
    """A symptom of a known bug in a text.

    Args:
        record: the patch, the bug without one, or what is no bug.
        symptom: as the record has it; "" where somebody's words come close to the record.
        line: number of the line where it shows, from 1.
        text: that line.
        certain: it is what an error said whose traceback runs through code of this bug.
        error: that error, ``None`` for what stands outside of one.
        file: the log.
        verdicts: on it, in the releases in question.
        cause: it is the one to begin with.
        program: what is to be run again, as one types it.
        needed: the call, argument or variable that the patch needs to mend this.
        is_patched: the log is of a program that ran with patches.
    """

    record: Record
    symptom: str
    line: int
    text: str
    certain: bool
    error: Optional[Raised] = None
    file: str = ""
    verdicts: list[dict[str, str]] = field(default_factory=list)
    cause: bool = False
    program: str = SOME_PROGRAM
    needed: str = ""
    is_patched: bool = False

    @property
    def ruled_out(self) -> bool:
        """The releases in question do not have the bug. Of one that is too old to be known here that is not said."""
        return bool(self.verdicts) and all(one["verdict"] in _WITHOUT for one in self.verdicts)

    @property
    def kind(self) -> str:
        """``"found"`` needs message, traceback and release."""
        if self.ruled_out:
            return "ruled out"
        if self.error is not None and self.error.before is not None:
            return "follows"
        is_there = isinstance(self.record, Feature) or any(v["verdict"] not in gate.ELSEWHERE for v in self.verdicts)
        if isinstance(self.record, Removed):  # no other bug says so, and the release is asked only where it is known
            return "found"
        return "found" if self.certain and is_there else "possible"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = USAGE
    parser.add_argument(
        "file", nargs="*", metavar="FILE", help="tracebacks or logs, also .gz; - reads standard input; or some words"
    )
    parser.add_argument(
        "--requirement",
        metavar="SPEC",
        help="the Lightning that wrote it, such as lightning==2.2.5, if it is not the one that is installed here",
    )
    parser.add_argument(
        "--json", action="store_true", help="as JSON; what a command writes to standard output goes to standard error"
    )


def run(args: argparse.Namespace) -> int:
    setting = _settings.read_toggle()
    if setting.selection is None:
        raise UsageError(str(setting.error))
    if args.program and args.file:
        raise UsageError("diagnose takes files, or a command after --, not both.")
    if not args.program and not args.file:
        raise UsageError("diagnose needs a FILE, - for standard input, WORDS in quotes, or -- and a command.")
    ended = None
    if args.program:
        ended, texts = _run_program(args.program, args.json)
    else:
        texts = _texts(args.file)
    hangs = _hangs([] if args.program else args.file)
    matches = []
    for name, text in texts:
        for match in _in_script(name) if _is_script(name) else find(text):
            match.file = name
            match.program = _as_typed(args.program) if args.program else _script(text)
            matches.append(match)
        if args.requirement is None:
            _judge_installed(matches, text, setting)
    if args.requirement is not None:
        releases = audit.audit_requirements([args.requirement], [], setting.selection)
        for match in matches:
            match.verdicts = _verdicts_by_number(match.record, [one for one in releases if one.known])
    matches = _ordered(matches)
    unknown = _unknown_cause(matches)
    status = OK if hangs or any(not match.ruled_out for match in matches) else NOT_APPLIED
    start = None if hangs or any(match.cause or match.error for match in matches) else _start.standing(texts)
    if matches or not hangs:
        closing = _closing(matches, unknown)
    else:
        closing = hangs[0]["do"]
    if start is not None and not any(match.kind == "possible" for match in matches):
        closing = _on_start(_as_typed(args.program) if args.program else SOME_PROGRAM)
    elif not matches and not hangs and not any(text.raised or text.has_traceback for _, text in texts):
        if ended is not None:
            closing = _on_end(ended, closing)
        else:
            closing = closing + _WITHOUT_ERROR if texts[0][0] else _UNKNOWN_WORDS
    lead = ""
    if any(not name and _is_of_a_hang(text) for name, text in texts):
        lead = f"If several ranks stand still, {_FINDS_OUT.format(SOME_PROGRAM)}"
    if args.json:
        names = [name for name, _ in texts]
        document = {"file": names[0], "files": names, "matches": [_as_dict(match) for match in matches]}
        error = unknown.words if unknown is not None else None
        started = start.as_dict() if start is not None else None
        more = {
            "error": error,
            "hangs": hangs,
            "start": started,
            "closing": f"{lead} {closing}".strip(),
            "ok": status == OK,
        }
        _output.write_json({**document, **more})
    else:
        if ended:
            by = f" ({_signal(ended)})" if _signal(ended) else ""
            _output.write(f"{args.program[0]} ended with status {ended}{by}.")
        if lead:
            _output.write(_output.styled(_output.paragraph(lead), "bold"))
            _output.write()
        _write_hangs(hangs)
        if start is not None:
            _write_start(start, several=len(texts) > 1)
        if matches or not hangs:
            _write(matches, unknown, closing, several=len(texts) > 1)
    return status if ended is None else ended


# ---------------------------------------------------------------- what is looked through


def _texts(names: list[str]) -> list[tuple[str, Text]]:
    words = " ".join(names)
    is_prose = (" " in words.strip() or _describe.CHINESE.search(words)) and not re.search(
        r"[/\\]|(?<!self)(?<!Module)\.(?:log|txt|out|err|gz)(?:\s|$)", words
    )
    if is_prose and not any(name == "-" or os.path.exists(name) for name in names):
        return [("", prepare(words))]
    return [(name, prepare("") if os.path.isdir(name) and _reports(name) else _read(name)) for name in names]


def _reports(name: str) -> list[dict[str, Any]]:
    """The reports of the hang watch in a file or directory; none if it is something else."""
    try:
        return hang_files.load(name) if os.path.isdir(name) or os.path.isfile(name) else []
    except OSError:
        return []


def _hangs(names: list[str]) -> list[dict[str, Any]]:
    """The last report of each file of the hang watch, with what to do."""
    last: dict[str, dict[str, Any]] = {}
    for report in (report for name in names for report in _reports(name)):
        count = last[report["file"]]["count"] + 1 if report["file"] in last else 1
        last[report["file"]] = {
            "file": report["file"],
            "verdict": report["verdict"],
            "do": _advice_on_hang(report["verdict"]),
            "count": count,
            "ranks": report["ranks"],
        }
    return list(last.values())


def _advice_on_hang(verdict: str) -> str:
    return next(advice for words, advice in _ON_HANGS if any(word in verdict for word in words))


def _write_hangs(hangs: list[dict[str, Any]]) -> None:
    for hang in hangs:
        _output.write(_output.paragraph(_printable(f"{hang['file']}: {hang['verdict']}.")))
        _output.write(_output.paragraph(f"do:  {hang['do']}", "  "))
        _output.write()


def _on_start(program: str) -> str:
    return f"If the program stood still there, {_FINDS_OUT.format(program)}"


def _on_end(status: int, closing: str) -> str:
    """What to do about a command that ended without an error on its standard error."""
    name = _signal(status)
    if name:
        killer = f" Often that is the out-of-memory killer, see `dmesg`. {_MORE_MEMORY}" if name == "SIGKILL" else ""
        return f"{name} ended it.{killer} {closing}"
    return f"{closing} There is no traceback on its standard error." if status else f"{closing} {_IN_WORDS}"


def _signal(status: int) -> str:
    """Name of the signal that an exit status stands for, as shells have it, "" for none."""
    try:
        return signal.Signals(status - 128).name
    except ValueError:
        return ""


def _write_start(start: _start.Start, several: bool) -> None:
    _output.write(_output.styled(_output.paragraph("possible: the ranks do not find each other (hang)"), "bold yellow"))
    place = f"{_printable(start.file)}, line {start.line}" if several else f"line {start.line}"
    _output.write(_output.paragraph(f"{place}: {_shown(start.text)}", "  "))
    _output.write(_output.paragraph(f"what: {start.words}", "  "))
    _output.write()


def _read(name: str) -> Text:
    try:
        with _log.opened(name) as stream:
            noted = _log.Noted(stream)
            text, numbers, size = _log.excerpt(noted, _anchors(), _Progress(name))
            if size <= MAX_PROSE and not text and stream.seekable():
                stream.seek(0)
                return noted.tell(prepare(stream.read().decode("utf-8", "replace")))
    except (OSError, EOFError) as error:
        meant = '. In words it takes more than one: `lightning-patches diagnose "it is stuck"`'
        hint = meant if isinstance(error, FileNotFoundError) and re.fullmatch(r"[^\W\d_]+", name) else ""
        raise UsageError(
            f"{_printable(name)} cannot be read: {getattr(error, 'strerror', None) or error}{hint}"
        ) from None
    return noted.tell(prepare(text, numbers))


class _Progress:
    """How much of a large log was looked through, on a terminal."""

    def __init__(self, name: str) -> None:
        known = name != "-" and not name.endswith(".gz") and os.path.isfile(name)
        self.size = os.path.getsize(name) if known else 0
        self.name = name

    def __call__(self, done: int) -> None:
        if sys.stderr.isatty() and (self.size or done) > 4 * _log.BLOCK:
            of = f" of {self.size >> 20}" if self.size else ""
            end = "\r\x1b[K" if done >= self.size > 0 else "\r"
            print(f"{self.name}: {done >> 20}{of} MB{end}", end="", file=sys.stderr, flush=True)


def _run_program(command: list[str], as_json: bool) -> tuple[int, list[tuple[str, Text]]]:
    """Run a command, with what it says on standard error shown and kept. Its standard output is its own, or goes to
    our standard error where ours is for JSON."""
    with tempfile.TemporaryFile() as kept:
        try:
            process = subprocess.Popen(command, stdout=_stderr() if as_json else None, stderr=subprocess.PIPE)
        except OSError as error:
            raise UsageError(f"diagnose: {command[0]}: {error.strerror}") from None
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the program, and we explain what it does
        try:
            assert process.stderr is not None
            _tee(process.stderr, kept)
            status = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        kept.seek(0)
        noted = _log.Noted(kept)
        text, numbers, size = _log.excerpt(noted, _anchors(), lambda done: None)
    status = 128 - status if status < 0 else status
    return status, [(shlex.join(command), noted.tell(prepare(text, numbers)))]


def _stderr() -> int:
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError):
        return subprocess.DEVNULL


def _as_typed(command: list[str]) -> str:
    """A command as `lightning-patches run` takes it, which has a Python of its own for a script or a module."""
    by_python = re.fullmatch(r"python[\d.]*", os.path.basename(command[0])) and len(command) > 1
    if by_python and (command[1] == "-m" or not command[1].startswith("-")):
        return shlex.join(command[1:])
    return f"-- {shlex.join(command)}"


def _script(text: Text) -> str:
    """The script that raised the errors of a log: it is where their tracebacks come from."""
    for error in text.raised:
        for frame in error.frames:
            path, _, function = frame.partition(" in ")
            if function == "<module>" and not _INSTALLED.search(path) and path.endswith(".py"):
                here = os.path.relpath(path)
                path = os.path.basename(path) if not os.path.isfile(path) else min(path, here, key=len)
                return shlex.quote(path)
    return SOME_PROGRAM


def _tee(source: IO[bytes], kept: IO[bytes]) -> None:
    while True:
        block = os.read(source.fileno(), 65536)
        if not block:
            return
        kept.write(block)
        try:
            sys.stderr.buffer.write(block)
            sys.stderr.buffer.flush()
        except OSError:
            pass  # nobody reads it any more


# ---------------------------------------------------------------- what is found


def _all_records() -> tuple[Record, ...]:
    return (*catalogue.all_patches(), *UNPATCHED, *FEATURES)


@lru_cache(maxsize=None)
def _anchors() -> _log.Anchors:
    known = (symptom for record in _all_records() for symptom in _symptoms(record))
    return _log.Anchors((*known, *_removed.SYMPTOMS))


def find(text: Text) -> list[Match]:
    """The known bugs whose symptoms are in a text, each once: where it is certain, or else where it shows first."""
    removed = [
        Match(row, row.name, text.numbers[error.message], _shown(error.words), True, error)
        for row, error in _removed.in_errors(text)
    ]
    matches = []
    for record in _all_records():
        found = [match for symptom in _symptoms(record) for match in _matches(record, symptom, text)]
        found = [match for match in found if match.certain or all(match.error is not one.error for one in removed)]
        if found:
            matches.append(min(found, key=lambda match: (not match.certain, match.line)))
    if not matches and not text.raised and _is_prose(text.searched):
        matches = _from_words(text)
    return [*removed, *matches]


def _is_script(name: str) -> bool:
    return name.endswith(".py") and os.path.isfile(name)


def _in_script(name: str) -> list[Match]:
    """What a script asks for that 2.x does not have."""
    with open(name, encoding="utf-8", errors="replace") as file:
        source = file.read()
    lines = source.splitlines()
    return [Match(row, row.name, line, _shown(lines[line - 1]), True) for row, line in _removed.in_script(source)]


def _is_prose(said: str) -> bool:
    """Whether it may be somebody's description, and no log."""
    signs = [one for one in said if not one.isspace()]
    letters = sum(map(str.isalpha, signs))
    return len(said) <= MAX_PROSE and letters >= 0.8 * len(signs) and not _LOGGED.search(said)


def _from_words(text: Text) -> list[Match]:
    records = {record.name: record for record in _all_records()}
    known = [(name, [*r.impact.symptoms, r.title, r.impact.summary]) for name, r in records.items()]
    names = _describe.compare(" ".join(text.lines), known)
    line = _shown(text.lines[0]) if text.lines else ""
    if _is_of_a_hang(text):
        hangs = {name for name, texts in known if any(_STANDS_STILL.search(one.lower()) for one in texts)}
        names = [name for name in names if name in hangs or records[name].group == "hang"]
    return [Match(records[name], "", 1, line, False) for name in names]


def _is_of_a_hang(text: Text) -> bool:
    """Whether somebody says that a program stands still."""
    said = text.searched
    return bool(_STANDS_STILL.search(said) or (_MAY_STAND_STILL.search(said) and not _NO_PROGRAM.search(said)))


def _symptoms(record: Record) -> tuple[str, ...]:
    return (*record.impact.symptoms, *getattr(record, "advisories", ()))


def _matches(record: Record, symptom: str, text: Text) -> Iterable[Match]:
    wanted = _log.normalised(symptom)
    pieces = _log.pieces(symptom)
    if not pieces or not all(piece in text.searched for piece in pieces):
        return  # what the pattern below would find out in a hundred times the time
    for number, found in enumerate(re.finditer(_log.pattern_of(symptom), text.searched)):
        if number == MAX_OCCURRENCES:
            return
        line = text.line_at(found.start())
        error = text.error_at(line)
        certain = _ADVISORY.match(symptom) is not None or (error is not None and _runs_through(record, error))
        if not certain and (_is_common(wanted) or _is_elsewhere(record, error, symptom, line, text)):
            continue
        is_patched = text.is_patched or (error is not None and any(map(_is_ours, error.frames)))
        shown = _shown(text.lines[line])
        needed = _calls.needed(record.name, text, line)
        yield Match(record, symptom, text.numbers[line], shown, certain, error, needed=needed, is_patched=is_patched)


def _is_elsewhere(record: Record, error: Optional[Raised], symptom: str, line: int, text: Text) -> bool:
    """Whether a complete traceback shows that an error did not come about in Lightning, nor on the path of the bug."""
    if error is None or not error.is_complete or (line > error.message and not _is_message(symptom)):
        return False
    chain = [one for one in text.raised if one.root is error.root]
    return not any(map(_is_lightning, (frame for one in chain for frame in one.frames))) and not any(
        _own_frames(record, one) for one in chain
    )


def _is_common(wanted: str) -> bool:
    """Whether other programs say the same: ``KeyError: 0`` tells nothing without the frames around it."""
    return len(wanted) < 16 or re.fullmatch(r"\w+(?:error|exception):.{0,6}", wanted) is not None


def _runs_through(record: Record, error: Raised) -> bool:
    """Whether an error's traceback runs through Lightning and the code of the bug."""
    return any(map(_is_lightning, error.frames)) and bool(_own_frames(record, error))


def _own_frames(record: Record, error: Raised) -> list[int]:
    """Indices of the frames that tell of this bug."""
    modules = {location.partition(":")[0].replace(".", "/") for location in getattr(record, "locations", ())}
    ends = tuple(f"/lightning/{module}{end}" for module in modules for end in (".py", "/__init__.py"))
    special = getattr(record, "frames", ())
    frames = map(_upstream_path, error.frames)
    return [
        index
        for index, frame in enumerate(frames)
        if any(part in frame for part in special) or (not special and ("/" + frame.partition(" in ")[0]).endswith(ends))
    ]


def _outermost(match: Match) -> int:
    frames = _own_frames(match.record, match.error) if match.error is not None else []
    return frames[0] if frames else 0


def _is_lightning(frame: str) -> bool:
    return any(path.search(frame) for path in _NAMESPACE_PATHS.values()) or _is_ours(frame)


def _is_ours(frame: str) -> bool:
    return _PATCHES_PATH.search(frame) is not None


def _upstream_path(frame: str) -> str:
    """A path in ``pytorch_lightning`` or ``lightning_fabric`` as it is in ``lightning``."""
    path = frame.replace("\\", "/").replace("pytorch_lightning/", "lightning/pytorch/")
    return path.replace("lightning_fabric/", "lightning/fabric/")


def _shown(line: str) -> str:
    line = _printable(" ".join(line.split()))
    return line if len(line) <= 300 else line[:297] + "..."


def _printable(text: str) -> str:
    """Without what a terminal obeys: control characters, and marks that turn the direction of writing."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _ordered(matches: list[Match]) -> list[Match]:
    """One match for each bug, the cause first: what is found before what is possible, the first error before others."""
    order = sorted(matches, key=lambda match: (_KINDS.index(match.kind), match.line if match.error else 0))
    once = list({match.record.name: match for match in reversed(order)}.values())
    once.sort(key=order.index)
    # Several bugs may say the same in one error: the one meant is that whose code the traceback comes to first.
    found = [match for match in once if match.kind == "found"]
    if found:
        first = [match for match in found if match.error is found[0].error]
        best = min(first, key=_outermost)
        best.cause = True
        for match in first:
            match.certain = match.cause
        once.sort(key=lambda match: not match.cause)
    elif once and once[0].kind == "follows" and _unknown_cause(once) is None:
        once[0].cause = True
    return once


def _unknown_cause(matches: list[Match]) -> Optional[Raised]:
    """The first error of the log, if that is no known bug, and what was found followed from it."""
    if any(match.kind in ("found", "possible") and match.error is not None for match in matches):
        return None
    return next((m.error.root for m in matches if m.kind == "follows" and m.error is not None), None)


# ---------------------------------------------------------------- the release


def _judge_installed(matches: list[Match], text: Text, setting: _settings.Toggle) -> None:
    if not matches:
        return
    used = {name for name, path in _NAMESPACE_PATHS.items() if any(path.search(file) for file in text.files)}
    entries = [entry for entry in _settings.verdicts(setting) if not used or entry.namespace in used]
    installed = [one for one in find_installed() if not used or one.namespace in used]
    for match in matches:
        if match.verdicts:
            continue
        if isinstance(match.record, Patch):
            match.verdicts = [
                {
                    "distribution": entry.distribution,
                    "version": entry.version,
                    "verdict": entry.verdict,
                    "reason": entry.reason,
                }
                for entry in entries
                if entry.patch == match.record.name
            ]
        else:
            match.verdicts = _verdicts_by_number(
                match.record, [audit.Audited(one.distribution, one.version) for one in installed]
            )


def _verdicts_by_number(record: Record, releases: list[audit.Audited]) -> list[dict[str, str]]:
    """Nothing has a verdict that is no bug."""
    return [] if isinstance(record, Feature) else [_verdict_by_number(record, one) for one in releases if one.version]


def _verdict_by_number(record: Union[Patch, Unpatched, Removed], one: audit.Audited) -> dict[str, str]:
    assert one.version is not None
    absent = "not-known" if gate.is_unknown(one.version, getattr(record, "ranges", record.affected)) else "not-affected"
    if isinstance(record, Patch):
        found = [bug for bug in one.bugs if bug.record is record]
        verdict = "pending" if found and found[0].covered else "disabled" if found else absent
        reason = found[0].reason if found else ""
    elif isinstance(record, Removed):
        verdict = "removed" if gate.in_ranges(one.version, record.affected) else "not-affected"
        reason = ""
    else:
        verdict = "unpatched" if audit.has(record, one.distribution, one.version) else absent
        reason = record.why_not if verdict == "unpatched" else ""
    return {"distribution": one.distribution, "version": one.version, "verdict": verdict, "reason": reason}


# ---------------------------------------------------------------- what to do


def _would_tell(match: Match) -> str:
    """What would make a possible bug a found one, or rule it out."""
    record = match.record
    if isinstance(record, Feature):
        return ""
    older = [verdict for verdict in match.verdicts if verdict["verdict"] == "not-known"]
    if older and len(older) == len(match.verdicts):
        which = f"{older[0]['distribution']} {older[0]['version']}"
        return f"nothing here: {which} is older than the releases that are known here, and no patch is for it"
    if match.error is None and isinstance(record, Patch) and record.would_tell_silent:
        return record.would_tell_silent
    if not match.symptom:
        return f"whether this is what happens there. `lightning-patches show {record.name}` tells more"
    if isinstance(record, Patch) and record.would_tell:
        return record.would_tell
    if not match.verdicts:
        return "which Lightning wrote this: add for instance --requirement lightning==2.2.5"
    if match.error is None and (record.group == "correctness" or not _is_message(match.symptom)):
        return f"whether it is what happens there, see `lightning-patches show {record.name}`"
    places = getattr(record, "frames", ()) or sorted(
        {location.partition(":")[0].replace(".", "/") + ".py" for location in getattr(record, "locations", ())}
    )
    if not places:
        return f"whether it is what happens there: {record.impact.summary}"
    return f"the error's traceback: if it is this bug, it runs through {' or '.join(place.strip() for place in places)}"


def _is_message(symptom: str) -> bool:
    """Whether a symptom is what an error says. A description is in plain lower case, without an error's marks."""
    marks = ("'", "`", '"', "()", "Error", "Exception", "CVE-", "GHSA-")
    return any(mark in symptom for mark in marks) or symptom[:1].isupper()


def _advice(match: Match) -> str:
    record = match.record
    if match.ruled_out:
        where = ", ".join(f"{verdict['distribution']} {verdict['version']}" for verdict in match.verdicts)
        if isinstance(record, Removed):
            return f"{where} has it; from {record.gone} on: {record.instead}"
        return f"{where} does not have this bug: here the cause is another one, unless the log is of another release"
    if isinstance(record, Removed):
        return f"gone since {record.gone}; instead: {record.instead}"
    if isinstance(record, Feature):
        return f"no release does it, and that is no bug; without replacing anything: {record.way_round}"
    if match.kind == "possible":
        return f"what would tell: {_would_tell(match)}"
    if isinstance(record, Unpatched):
        return f"there is no patch ({record.why_not}); move to {record.move_to}"
    kinds = {verdict["verdict"] for verdict in match.verdicts}
    leave = f"or move to Lightning {record.fixed_in}" if record.fixed_in else "no release has the fix yet"
    if kinds & set(gate.REFUSED):
        return f"the patch is not applied here, see `lightning-patches status {record.name}`; {leave}"
    if not record.default and "pending" not in kinds:
        return f"the patch is opt-in, {_how(f'default,{record.name}', match.program)} adds it; {leave}"
    if "disabled" in kinds:
        return f"LIGHTNING_PATCHES leaves the patch out; select it, {leave}"
    if match.needed and record.name == "own-checkpoint-load" and not match.is_patched:
        run = _how("1", match.program)
        return f"{run} mends it if the run itself wrote the checkpoint; for any other put {match.needed}; {leave}"
    if match.needed:
        return f"put {match.needed}; {leave}"
    if match.is_patched:
        status = f"`lightning-patches status {record.name}`"
        return f"the program ran with the patches on, and shows it all the same: {status} there says why; {leave}"
    return f"{_how('1', match.program)} mends it; {leave}"


def _how(spec: str, program: str = SOME_PROGRAM) -> str:
    """The shortest way to turn the patches on here."""
    if autostart.is_enabled():
        return f"`LIGHTNING_PATCHES={spec}`"
    imported = _calls.AT_TOP
    if spec == "1":
        return f"`lightning-patches run {program}` (or {imported})"
    return f"`lightning-patches run --patches {spec} {program}` (or `LIGHTNING_PATCHES={spec}` and {imported})"


def _closing(matches: list[Match], unknown: Optional[Raised]) -> str:
    """The last line: one cause, one piece of advice."""
    if unknown is not None:
        return f"The cause is the first error, which is no known bug of Lightning: {_shown(unknown.words)}"
    cause = next((match for match in matches if match.cause), None)
    if cause is not None:
        advice = _advice(cause)
        return f"{cause.record.name}: {advice}."
    if matches and isinstance(matches[0].record, Feature):
        return f"If that is what you are after: {matches[0].record.way_round}."
    if any(not match.symptom and match.kind == "possible" and isinstance(match.record, Patch) for match in matches):
        return (
            "These are weak matches, by your words alone: `lightning-patches show NAME` tells what each is about, and "
            "what helps. A log or a traceback tells more."
        )
    if any(match.kind == "possible" for match in matches):
        return "Nothing is certain: see above what would tell. A patch is no remedy for a guess."
    if matches:
        return "No known bug of this release shows in it. `lightning-patches doctor` looks at the environment."
    return (
        "No known bug of Lightning shows in it. `lightning-patches doctor` looks at the environment, "
        "`lightning-patches list` has all bugs that are patched."
    )


def _as_dict(match: Match) -> dict[str, Any]:
    record = match.record
    return {
        "name": record.name,
        "title": record.title,
        "group": record.group,
        "summary": record.impact.summary,
        "symptom": match.symptom,
        "file": match.file,
        "line": match.line,
        "text": match.text,
        "kind": match.kind,
        "cause": match.cause,
        "certain": match.kind == "found",
        "ruled_out": match.ruled_out,
        "verdicts": match.verdicts,
        "would_tell": _would_tell(match) if match.kind == "possible" else "",
        "advice": _advice(match),
        "fixed_in": record.fixed_in,
        "patched": isinstance(record, Patch),
        "issues": list(record.upstream.issues),
        "pull_requests": list(record.upstream.pull_requests),
    }


def _write(matches: list[Match], unknown: Optional[Raised], closing: str, several: bool) -> None:
    has_cause = any(match.cause for match in matches)
    briefly = []
    for match in matches:
        is_removed = isinstance(match.record, Removed) and match.error is None
        if match.cause or is_removed or (not has_cause and unknown is None and match.kind != "ruled out"):
            _write_match(match, several)
            _output.write()
        else:
            briefly.append(match)
    for kind, words in (
        ("follows", "Followed from the first error"),
        ("found", "Also found"),
        ("possible", "Also possible, and no reason to act yet"),
        ("ruled out", "Not this one, which the release does not have"),
    ):
        names = [match.record.name for match in briefly if match.kind == kind]
        if names:
            _output.write(_output.paragraph(f"{words}: {', '.join(names)}."))
    if briefly:
        _output.write()
    _output.write(_output.styled(_output.paragraph(closing), "bold"))


def _write_match(match: Match, several: bool) -> None:
    record = match.record
    kind = "found" if match.kind == "follows" else match.kind
    heading = _output.paragraph(f"{kind}: {record.name} ({record.group})")
    _output.write(_output.styled(heading, {"found": "bold red", "possible": "bold yellow"}.get(kind, "dim")))
    place = f"{_printable(match.file)}, line {match.line}" if several else f"line {match.line}"
    if match.symptom:
        _output.write(_output.paragraph(f"{place}: {match.text}", "  "))
    _output.write(_output.paragraph(f"what: {record.impact.summary}", "  "))
    if isinstance(record, Patch):
        fixed = _records.fixed_in(record)
        _output.write(_output.paragraph(f"releases: {_records.affected(record)}; fixed in: {fixed}", "  "))
    for verdict in match.verdicts:
        words = _settings.in_words(verdict["verdict"], verdict["reason"])
        _output.write(_output.paragraph(f"here: {verdict['distribution']} {verdict['version']}: {words}", "  "))
    if not match.cause:
        _output.write(_output.paragraph(f"{_advice(match)}.", "  "))
    if isinstance(record, Patch) and match.symptom:
        _output.write(_output.paragraph(f"more: `lightning-patches show {record.name}`", "  "))
