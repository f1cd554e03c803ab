"""Which known bugs a log or a script shows: symptoms, and the errors and frames in which they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Optional, Union

from lightning_patches import patches as catalogue
from lightning_patches.cli import _output
from lightning_patches.cli.diagnose import calls, describe, log, removed
from lightning_patches.cli.diagnose.hangs import Hang
from lightning_patches.cli.diagnose.log import Frame, Raised, Text
from lightning_patches.engine import gate
from lightning_patches.patch import Patch
from lightning_patches.removed import Removed
from lightning_patches.unpatched import FEATURES, UNPATCHED, Feature, Unpatched

SOME_PROGRAM = "train.py"

OUT_OF_SYNC = "GradientSyncError: "
MAX_PROSE = 600
"""Characters up to which a text without an error may be somebody's description of what happened."""

MAX_OCCURRENCES = 50
"""Places of one symptom that are looked at."""

NAMESPACE_PATHS = {
    "lightning": re.compile(r"(?:^|[/\\])lightning[/\\](?:pytorch|fabric)[/\\]"),
    "pytorch_lightning": re.compile(r"(?:^|[/\\])(?:pytorch_lightning|lightning_fabric)[/\\]"),
}

_PATCHES_PATH = re.compile(r"[/\\]lightning_patches[/\\]patches[/\\]")

_ADVISORY = re.compile(r"(?:CVE|GHSA|PYSEC)-")

_LOGGED = re.compile(r"\w(?:error|exception):|\w: \d")
"""What a log has, and a description has not."""

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

Record = Union[Patch, Unpatched, Removed, Feature]


class OnRelease(NamedTuple):
    """The verdict on a bug in one release.

    Args:
        distribution, version: the release.
        verdict: as `lightning-patches status` has it, or "unpatched" or "removed" for what is no patch.
        reason: why, whole.
        in_short: the same for those who know how a patch is applied.
    """

    distribution: str
    version: str
    verdict: str
    reason: str
    in_short: str

    @property
    def release(self) -> str:
        return f"{self.distribution} {self.version}"


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
        index: of that line in what was read.
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
    verdicts: list[OnRelease] = field(default_factory=list)
    cause: bool = False
    program: str = SOME_PROGRAM
    index: int = 0
    needed: str = ""
    is_patched: bool = False

    @property
    def ruled_out(self) -> bool:
        """The releases in question do not have the bug. Of one that is too old to be known here that is not said."""
        return bool(self.verdicts) and all(one.verdict in _WITHOUT for one in self.verdicts)

    @property
    def kind(self) -> str:
        """``"found"`` needs message, traceback and release."""
        if self.ruled_out:
            return "ruled out"
        if self.error is not None and self.error.before is not None:
            return "follows"
        is_there = isinstance(self.record, Feature) or any(v.verdict not in gate.ELSEWHERE for v in self.verdicts)
        if isinstance(self.record, Removed):  # no other bug says so, and the release is asked only where it is known
            return "found"
        return "found" if self.certain and is_there else "possible"


@dataclass
class Log:
    """What is looked through.

    Args:
        name: the file's, or the program's; "" for words.
        text: what was read of it.
        program: what is to be run again, as one types it.
        is_script: it is a script, and no log.
        hangs: the last report of the hang watch in it, or in each file of a directory.
    """

    name: str
    text: Text
    program: str = SOME_PROGRAM
    is_script: bool = False
    hangs: list[Hang] = field(default_factory=list)

    @property
    def in_words(self) -> bool:
        """It is somebody's description."""
        return not self.name


def all_records() -> tuple[Record, ...]:
    return (*catalogue.all_patches(), *UNPATCHED, *FEATURES)


@lru_cache(maxsize=None)
def anchors() -> log.Anchors:
    known = (symptom for record in all_records() for symptom in symptoms(record))
    return log.Anchors((*known, *removed.SYMPTOMS, OUT_OF_SYNC))


def find_all(one: Log) -> list[Match]:
    """The known bugs that a log shows, or what a script asks for that 2.x does not have."""
    matches = in_script(one.name) if one.is_script else find(one.text)
    for match in matches:
        match.file, match.program = one.name, one.program
    return matches


def find(text: Text) -> list[Match]:
    """The known bugs whose symptoms are in a text, each once: where it is certain, or else where it shows first."""
    gone = [
        Match(row, row.name, text.numbers[error.message], _output.shown(error.words), True, error)
        for row, error in removed.in_errors(text)
    ]
    matches = []
    for record in all_records():
        found = [match for symptom in symptoms(record) for match in _matches(record, symptom, text)]
        found = [match for match in found if match.certain or all(match.error is not one.error for one in gone)]
        if found:
            first = min(found, key=lambda match: (not match.certain, match.line))
            first.needed = calls.needed(record.name, text, first.index, first.is_patched)
            matches.append(first)
    if not matches and not text.raised and _is_prose(text.searched):
        matches = _from_words(text)
    return [*gone, *matches]


def in_script(name: str) -> list[Match]:
    """What a script asks for that 2.x does not have."""
    with open(name, encoding="utf-8", errors="replace") as file:
        source = file.read()
    lines = source.splitlines()
    return [Match(row, row.name, line, _output.shown(lines[line - 1]), True) for row, line in removed.in_script(source)]


def _is_prose(said: str) -> bool:
    """Whether it may be somebody's description, and no log."""
    signs = [one for one in said if not one.isspace()]
    letters = sum(map(str.isalpha, signs))
    return len(said) <= MAX_PROSE and letters >= 0.8 * len(signs) and not _LOGGED.search(said)


def _from_words(text: Text) -> list[Match]:
    records = {record.name: record for record in all_records()}
    known = [(name, [*r.impact.symptoms, r.title, r.impact.summary]) for name, r in records.items()]
    names = describe.compare(" ".join(text.lines), known)
    line = _output.shown(text.lines[0]) if text.lines else ""
    if is_of_a_hang(text):
        hangs = {name for name, texts in known if any(_STANDS_STILL.search(one.lower()) for one in texts)}
        names = [name for name in names if name in hangs or records[name].group == "hang"]
    return [Match(records[name], "", 1, line, False) for name in names]


def is_of_a_hang(text: Text) -> bool:
    """Whether somebody says that a program stands still."""
    said = text.searched
    return bool(_STANDS_STILL.search(said) or (_MAY_STAND_STILL.search(said) and not _NO_PROGRAM.search(said)))


def symptoms(record: Record) -> tuple[str, ...]:
    return (*record.impact.symptoms, *getattr(record, "advisories", ()))


def _matches(record: Record, symptom: str, text: Text) -> Iterable[Match]:
    wanted = log.normalised(symptom)
    pieces = log.pieces(symptom)
    if not pieces or not all(piece in text.searched for piece in pieces):
        return  # what the pattern below would find out in a hundred times the time
    for number, found in enumerate(re.finditer(log.pattern_of(symptom), text.searched)):
        if number == MAX_OCCURRENCES:
            return
        line = text.line_at(found.start())
        error = text.error_at(line)
        certain = _ADVISORY.match(symptom) is not None or (error is not None and _runs_through(record, error))
        if not certain and (_is_common(wanted) or _is_elsewhere(record, error, symptom, line, text)):
            continue
        is_patched = _is_patched(record, error, text)
        shown = _output.shown(text.lines[line])
        yield Match(record, symptom, text.numbers[line], shown, certain, error, index=line, is_patched=is_patched)


def _is_patched(record: Record, error: Optional[Raised], text: Text) -> bool:
    """Whether the program ran with a patch: by our line, or a frame of ours; an opt-in one by its own frame alone."""
    ours = [frame.path for frame in error.frames if _is_ours(frame)] if error is not None else []
    if isinstance(record, Patch) and not record.default:
        own = f"{record.name.replace('-', '_')}.py"
        return any(re.split(r"[/\\]", path)[-1] == own for path in ours)
    return text.is_patched or bool(ours)


def _is_elsewhere(record: Record, error: Optional[Raised], symptom: str, line: int, text: Text) -> bool:
    """Whether a complete traceback shows that an error did not come about in Lightning, nor on the path of the bug."""
    if error is None or not error.is_complete or (line > error.message and not record.impact.error):
        return False
    chain = [one for one in text.raised if one.root is error.root]
    return not any(map(_is_lightning, (frame for one in chain for frame in one.frames))) and not any(
        own_frames(record, one) for one in chain
    )


def _is_common(wanted: str) -> bool:
    """Whether other programs say the same: ``KeyError: 0`` tells nothing without the frames around it."""
    return len(wanted) < 16 or re.fullmatch(r"\w+(?:error|exception):.{0,6}", wanted) is not None


def _runs_through(record: Record, error: Raised) -> bool:
    """Whether an error's traceback runs through Lightning and the code of the bug."""
    return any(map(_is_lightning, error.frames)) and bool(own_frames(record, error))


def own_frames(record: Record, error: Raised) -> list[int]:
    """Indices of the frames that tell of this bug."""
    modules = {location.partition(":")[0].replace(".", "/") for location in getattr(record, "locations", ())}
    ends = tuple(f"/lightning/{module}{end}" for module in modules for end in (".py", "/__init__.py"))
    special = record.impact.frames if isinstance(record, Patch) else getattr(record, "frames", ())
    found = []
    for index, frame in enumerate(error.frames):
        path = _upstream_path(frame.path)
        if any(part in f"{path} in {frame.function}" for part in special) if special else f"/{path}".endswith(ends):
            found.append(index)
    return found


def _is_lightning(frame: Frame) -> bool:
    return any(path.search(frame.path) for path in NAMESPACE_PATHS.values()) or _is_ours(frame)


def _is_ours(frame: Frame) -> bool:
    return _PATCHES_PATH.search(frame.path) is not None


def _upstream_path(path: str) -> str:
    """A path in ``pytorch_lightning`` or ``lightning_fabric`` as it is in ``lightning``."""
    path = path.replace("\\", "/").replace("pytorch_lightning/", "lightning/pytorch/")
    return path.replace("lightning_fabric/", "lightning/fabric/")
