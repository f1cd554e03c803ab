"""Read a traceback or a log, and tell which known bugs of Lightning it shows and what to do about each.

FILE is a text file, or - for standard input. Colours, rank prefixes, time stamps, frames of boxes, paths, line
numbers and device numbers make no difference. A short description in words, such as "gradients differ between ranks",
is compared as well.

What is found is held against the Lightning that is installed here, or against --requirement where the log comes from
another machine. A bug that this release does not have is named, and does not count as a match.

With --json, one object; keys are only ever added:
  schema   1
  file     the name, or "-"
  matches  [{name, title, group, summary, symptom, line (number in the file), text (of that line), certain, ruled_out,
           verdicts: [{distribution, version, verdict, reason}], advice, fixed_in (null: never), patched (there is a
           patch), issues, pull_requests}]
  ok       the exit status is 0

exit status: 0 something matches, 1 nothing does, 2 the command line or the file is wrong.
"""

from __future__ import annotations

import argparse
import bisect
import os
import re
import sys
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from lightning_patches import catalog
from lightning_patches.cli import NOT_APPLIED, OK, UsageError, _output, _records, audit, status
from lightning_patches.known_bugs import KNOWN_BUGS, KnownBug
from lightning_patches.patch import Patch

HELP = "find the known bug in a traceback or a log, and what to do about it"

MAX_BYTES = 64 * 1024 * 1024
"""Of a longer file only this much is read, from its end."""
MAX_PROSE = 600
"""Characters up to which a text without a traceback may be somebody's description of what happened."""
MIN_OVERLAP = 0.8
"""Share of a symptom's words that a description has to contain."""
MAX_GAP = 300
"""Characters that ``...`` in a symptom may stand for."""

_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_PREFIXES = re.compile(
    r"""\s*(?:
        \[(?:default|rank|)\s?\d+\]:?              # [rank0]:  torch; [default0]: torchrun's tee
      | \[\d+,\d+\]<std(?:err|out)>:?              # mpirun --tag-output
      | \([\w:.<>-]*\s?(?:pid|rank)=[^)]*\)        # (RayTrainWorker pid=12, ip=10.0.0.1)
      | \d{1,5}:\s                                 # srun --label
      | \w+-\d+\s+\|                               # docker compose
      | \[?\d{4}-\d\d-\d\d[T\s]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\]?
      | \[?(?:INFO|WARNING|WARN|ERROR|CRITICAL|DEBUG)\]?[:\s]
      | [│┃|║]
    )\s*""",
    re.VERBOSE,
)
_BOX = re.compile(r"[─-╿❱]+")
_QUOTES = str.maketrans('‘’´`"“”', "'" * 7)
_VARYING = (
    (re.compile(r"\b(cuda|xpu|mps|npu|hpu):\d+"), r"\1:n"),
    (re.compile(r"0x[0-9a-f]+"), "0xn"),
    (re.compile(r"\bline \d+\b"), "line n"),
)
_FRAME = re.compile(r'File "([^"\n]+)", line \d+|^(?:\s*[│┃|]?\s*)(/[^\s:]+\.py):\d+ in \w+', re.MULTILINE)
_NAMESPACE_PATHS = {
    "lightning": re.compile(r"(?:^|[/\\])lightning[/\\](?:pytorch|fabric)[/\\]"),
    "pytorch_lightning": re.compile(r"(?:^|[/\\])(?:pytorch_lightning|lightning_fabric)[/\\]"),
}
_ERROR = re.compile(r"\w(?:error|exception):")
_WORDS = re.compile(r"[a-z0-9_.]+")
_FILLERS = frozenset(
    (
        "a",
        "an",
        "and",
        "at",
        "by",
        "for",
        "in",
        "is",
        "it",
        "its",
        "my",
        "not",
        "of",
        "on",
        "or",
        "the",
        "to",
        "was",
        "when",
    )
)
_ELSEWHERE = ("not-affected", "fixed-upstream")

Record = Union[Patch, KnownBug]


@dataclass
class Text:
    """A log, ready to be searched.

    Args:
        lines: the original lines.
        searched: all lines without what varies, in one.
        starts: where each line starts in ``searched``.
        files: the files of the tracebacks' frames.
    """

    lines: list[str]
    searched: str
    starts: list[int]
    files: list[str]

    def line_at(self, position: int) -> int:
        """Number of the line, from 0, at a position of ``searched``."""
        return bisect.bisect_right(self.starts, position) - 1


@dataclass
class Match:
    """A symptom of a known bug in a text.

    Args:
        record: the patch, or the bug without one.
        symptom: as the record has it.
        line: number of the line where it shows, from 1.
        text: that line.
        certain: it is the error message itself, and not a description or a line that is there without the bug, too.
        verdicts: what the releases in question have of it.
    """

    record: Record
    symptom: str
    line: int
    text: str
    certain: bool
    verdicts: list[dict[str, str]] = field(default_factory=list)

    @property
    def ruled_out(self) -> bool:
        return bool(self.verdicts) and all(verdict["verdict"] in _ELSEWHERE for verdict in self.verdicts)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a traceback or log; - reads standard input")
    parser.add_argument(
        "--requirement",
        metavar="SPEC",
        help="the Lightning that wrote it, such as lightning==2.2.5, if it is not the one that is installed here",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    setting = status.read_toggle()
    if setting.selection is None:
        raise UsageError(str(setting.error))
    text = prepare(_read(args.file))
    matches = find(text)
    if args.requirement is not None:
        releases = audit.audit_requirements([args.requirement], [], setting.selection)
        for match in matches:
            match.verdicts = [_verdict_by_number(match.record, one) for one in releases if one.version is not None]
    else:
        _judge_installed(matches, text, setting)
    matches.sort(key=lambda match: (match.ruled_out, not match.certain))
    ended = OK if any(not match.ruled_out for match in matches) else NOT_APPLIED
    if args.json:
        _output.write_json(
            {"schema": 1, "file": args.file, "matches": [_as_dict(match) for match in matches], "ok": ended == OK}
        )
    else:
        _write(matches)
    return ended


def prepare(text: str) -> Text:
    """Take a log apart."""
    text = _ANSI.sub("", text)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    starts: list[int] = []
    parts: list[str] = []
    position = 0
    for line in lines:
        starts.append(position)
        part = _normalise(_without_prefixes(line))
        if part:
            parts.append(part)
            position += len(part) + 1
    files = [first or second for first, second in _FRAME.findall("\n".join(map(_without_prefixes, lines)))]
    return Text(lines, " ".join(parts), starts, files)


def find(text: Text) -> list[Match]:
    """The known bugs whose symptoms are in a text, each once."""
    matches = []
    records: tuple[Record, ...] = (*catalog.all_patches(), *KNOWN_BUGS)
    for record in records:
        found = [match for symptom in _symptoms(record) if (match := _match(record, symptom, text)) is not None]
        if found:
            matches.append(max(found, key=lambda match: (match.certain, len(match.symptom))))
    return matches


def _read(name: str) -> str:
    try:
        if name == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as file:
                if os.fstat(file.fileno()).st_size > MAX_BYTES:
                    file.seek(-MAX_BYTES, os.SEEK_END)
                data = file.read(MAX_BYTES)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror or error}") from None
    return data[-MAX_BYTES:].decode("utf-8", errors="replace")


def _without_prefixes(line: str) -> str:
    while True:
        prefix = _PREFIXES.match(line)
        if prefix is None or not prefix.group().strip():
            return line
        line = line[prefix.end() :]


def _normalise(text: str) -> str:
    text = _BOX.sub(" ", text).translate(_QUOTES).lower()
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def _symptoms(record: Record) -> tuple[str, ...]:
    return record.impact.symptoms if isinstance(record, Patch) else (*record.symptoms, *record.advisories)


def _match(record: Record, symptom: str, text: Text) -> Optional[Match]:
    wanted = _normalise(symptom)
    pieces = [re.escape(piece.strip()) for piece in re.split(r"\.\.\.|…", wanted) if piece.strip()]
    if not pieces:
        return None
    gap = rf".{{0,{MAX_GAP}}}?"
    edges = (r"(?<!\w)" if wanted[0].isalnum() else "", r"(?![\w.]*\w)" if wanted[-1].isalnum() else "")
    found = re.search(edges[0] + gap.join(pieces) + edges[1], text.searched)
    if found is not None:
        told_by_frames = _in_frames(record, text)
        if _is_common(wanted) and not told_by_frames:
            return None
        number = text.line_at(found.start())
        is_message = told_by_frames or _is_message(symptom)
        return Match(record, symptom, number + 1, _shown(text.lines[number]), is_message)
    if len(text.searched) <= MAX_PROSE and not text.files and _ERROR.search(text.searched) is None:
        words = set(_WORDS.findall(wanted)) - _FILLERS
        said = set(_WORDS.findall(text.searched))
        if len(words) > 3 and len(words & said) >= MIN_OVERLAP * len(words):
            return Match(record, symptom, 1, _shown(text.lines[0]), False)
    return None


def _is_common(wanted: str) -> bool:
    """Whether other programs say the same: ``KeyError: 0`` tells nothing without the frames around it."""
    return len(wanted) < 16 or re.fullmatch(r"\w+(?:error|exception):.{0,6}", wanted) is not None


def _is_message(symptom: str) -> bool:
    """Whether a symptom is what an error says. A description is in plain lower case, without an error's marks."""
    marks = ("'", "`", '"', "()", "Error", "Exception", "CVE-", "GHSA-")
    return any(mark in symptom for mark in marks) or (symptom[:1].isupper() and len(symptom.split()) > 4)


def _in_frames(record: Record, text: Text) -> bool:
    """Whether a traceback in the text runs through a file that the patch is for."""
    if not isinstance(record, Patch):
        return False
    suffixes = tuple(
        "/" + location.partition(":")[0].replace(".", "/") + ending
        for location in record.locations
        for ending in (".py", "/__init__.py")
    )
    for name in text.files:
        # pytorch_lightning/x.py and lightning_fabric/x.py stand for lightning/pytorch/x.py and lightning/fabric/x.py
        path = name.replace("\\", "/").replace("pytorch_lightning/", "lightning/pytorch/")
        if path.replace("lightning_fabric/", "lightning/fabric/").endswith(suffixes):
            return True
    return False


def _shown(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= 300 else line[:297] + "..."


def _judge_installed(matches: list[Match], text: Text, setting: status.Toggle) -> None:
    used = {name for name, path in _NAMESPACE_PATHS.items() if any(path.search(file) for file in text.files)}
    entries = [entry for entry in status.verdicts(setting) if not used or entry.namespace in used]
    installed = [one for one in status.find_installed() if not used or one.namespace in used]
    for match in matches:
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
            match.verdicts = [
                _verdict_by_number(match.record, audit.Audited(one.distribution, one.version)) for one in installed
            ]


def _verdict_by_number(record: Record, one: audit.Audited) -> dict[str, str]:
    assert one.version is not None
    if isinstance(record, Patch):
        found = [bug for bug in one.bugs if bug.record is record]
        verdict = "pending" if found and found[0].covered else "disabled" if found else "not-affected"
        reason = found[0].reason if found else ""
    else:
        verdict = "unpatched" if audit.has(record, one.distribution, one.version) else "not-affected"
        reason = record.why_not if verdict == "unpatched" else ""
    return {"distribution": one.distribution, "version": one.version, "verdict": verdict, "reason": reason}


def _advice(match: Match) -> str:
    record = match.record
    if match.ruled_out:
        where = ", ".join(f"{verdict['distribution']} {verdict['version']}" for verdict in match.verdicts)
        return f"{where} does not have this bug: here the cause is another one, unless the log is of another release"
    if isinstance(record, KnownBug):
        return f"there is no patch ({record.why_not}); move to {record.move_to}"
    kinds = {verdict["verdict"] for verdict in match.verdicts}
    leave = f"or move to Lightning {record.fixed_in}" if record.fixed_in else "no release has the fix yet"
    name = record.name if record.default else f"default,{record.name}"
    if kinds & {"drifted", "failed"}:
        return f"the patch is not applied here, see `lightning-patches status`; {leave}"
    if not record.default and "pending" not in kinds:
        return f"the patch is opt-in: `import lightning_patches` with LIGHTNING_PATCHES={name}; {leave}"
    if "disabled" in kinds:
        return f"LIGHTNING_PATCHES leaves the patch out; let it in, {leave}"
    return f"`import lightning_patches` on top of the script, or `lightning-patches run script.py`; {leave}"


def _as_dict(match: Match) -> dict[str, Any]:
    record = match.record
    is_patch = isinstance(record, Patch)
    numbers: Any = record.upstream if isinstance(record, Patch) else record
    return {
        "name": record.name,
        "title": record.title,
        "group": record.group,
        "summary": record.impact.summary if isinstance(record, Patch) else record.harm,
        "symptom": match.symptom,
        "line": match.line,
        "text": match.text,
        "certain": match.certain,
        "ruled_out": match.ruled_out,
        "verdicts": match.verdicts,
        "advice": _advice(match),
        "fixed_in": record.fixed_in,
        "patched": is_patch,
        "issues": list(numbers.issues),
        "pull_requests": list(numbers.pull_requests),
    }


def _write(matches: list[Match]) -> None:
    if not matches:
        _output.write(
            _output.paragraph(
                "No known bug of Lightning shows in it. `lightning-patches doctor` looks at the environment, "
                "`lightning-patches list` has all bugs that are patched."
            )
        )
        return
    for number, match in enumerate(matches):
        if number:
            _output.write()
        data = _as_dict(match)
        kind = "not this one" if match.ruled_out else "found" if match.certain else "possible"
        _output.write(_output.paragraph(f"{kind}: {data['name']} ({data['group']})"))
        _output.write(_output.paragraph(f"line {match.line}: {match.text}", "  "))
        _output.write(_output.paragraph(f"what: {data['summary']}", "  "))
        if isinstance(match.record, Patch):
            fixed = _records.fixed_in(match.record)
            _output.write(_output.paragraph(f"releases: {_records.affected(match.record)}; fixed in: {fixed}", "  "))
        for verdict in match.verdicts:
            words = status.WORDS.get(verdict["verdict"], verdict["verdict"])
            reason = f" ({verdict['reason']})" if verdict["reason"] else ""
            _output.write(
                _output.paragraph(f"here: {verdict['distribution']} {verdict['version']}: {words}{reason}", "  ")
            )
        _output.write(_output.paragraph(f"do: {data['advice']}.", "  "))
        if isinstance(match.record, Patch):
            _output.write(_output.paragraph(f"more: lightning-patches show {match.record.name}", "  "))
