"""Find the records that may explain a log, a script or a description.

Each candidate has a ground: a frame of the code with the bug, a line that only this record explains, a line with
several explanations, an error that a silent bug causes later, or a description.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Optional

from lightning_patches.cli import _output
from lightning_patches.cli.diagnose import calls, describe, frames, known, needs, rules, script
from lightning_patches.cli.diagnose.known import Known, Record
from lightning_patches.cli.diagnose.log import Log
from lightning_patches.cli.diagnose.tracebacks import FOLLOW_UP_ERRORS, Raised
from lightning_patches.known.unpatched import Unpatched
from lightning_patches.patch import Consequence, Patch
from lightning_patches.patches.removed import Removed

Ground = Literal["frame", "line", "weak line", "consequence", "words", "script", "number"]

MOST_ERRORS = 200
"""Most different errors of a log that are compared with the records."""
MASKS = ("dataloader-error-unmasked", "worker-shutdown-error", "error-kept-in-ddp", "tuner-cleanup-on-error")
"""Bugs that replace the first error by another one."""
MIN_WORDS = 5
"""A symptom with fewer words is too general to report a bug without a traceback."""

_NAME = re.compile(r"\b(?:\w+_\w+|[A-Z]+[a-z]+[A-Z]\w*)\b")
_GROUNDS: tuple[Ground, ...] = ("frame", "script", "number", "line", "consequence", "weak line", "words")


# Signs of a text: the group of its record ("environment" for events, too); "removed" (name), "owned" (the text names
# the class that lost it); "advisory"; "distinct" (no other record has it), "weak" (it has other causes, too),
# "ambiguous" (even with a frame), "usual" (programs without the bug have it, too), "questioned" (the user must check
# something), "shared" (by patches),
# "possible"; "names Lightning". Signs of its error: it "passed" through the code with the bug, or "through Lightning";
# it is "complete" or has a "traceback" at all. Signs outside of errors: another error was "raised", or "ended" the
# program; a user has "described" the problem.
_IN_ERRORS: tuple[rules.Rule[Optional[Ground]], ...] = (
    ({"removed", "owned"}, set(), "line"),
    ({"removed"}, set(), None),
    ({"passed", "ambiguous"}, set(), "weak line"),
    ({"passed", "through Lightning"}, set(), "frame"),
    ({"passed", "environment"}, set(), "frame"),
    ({"environment", "distinct", "unpickled", "traceback"}, {"through Lightning"}, None),
    ({"environment", "distinct", "unpickled"}, set(), "weak line"),
    ({"distinct", "questioned"}, set(), "weak line"),
    ({"environment", "distinct"}, set(), "line"),
    ({"environment"}, {"traceback"}, "weak line"),
    ({"weak"}, {"traceback", "shared"}, "weak line"),
    ({"possible"}, {"traceback", "distinct", "advisory"}, "weak line"),
    (set(), {"distinct", "advisory"}, None),
    ({"complete"}, {"through Lightning", "advisory", "names Lightning"}, None),  # the error is not from Lightning
    ({"weak"}, set(), "weak line"),
    ({"advisory"}, set(), "line"),
    ({"complete", "traceback", "placed"}, set(), "weak line"),
    (set(), set(), "line"),
)
_OUTSIDE: tuple[rules.Rule[Optional[Ground]], ...] = (
    ({"removed", "owned"}, set(), "line"),
    ({"removed"}, set(), None),
    ({"usual"}, {"described"}, None),
    ({"event", "described"}, set(), "weak line"),
    ({"ended", "feature"}, set(), None),
    ({"ended", "event"}, set(), None),
    ({"ended", "advisory"}, set(), "weak line"),
    ({"ended", "distinct"}, {"weak"}, "weak line"),
    ({"ended"}, set(), None),
    ({"advisory"}, set(), "line"),
    ({"distinct"}, {"weak", "questioned"}, "line"),
    ({"distinct", "questioned"}, set(), "weak line"),
    ({"weak"}, {"shared"}, "weak line"),
    ({"possible"}, {"raised"}, "weak line"),
)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A record that may explain a log.

    Args:
        record: a patch, a bug without a patch, or a record that is not a bug.
        symptom: the text of the record that occurs in the log; "" if the record was found by a description.
        line: number of the line in the log, from 1.
        text: that line.
        ground: the reason why the record is a candidate.
        log: the log.
        error: the error with the symptom; ``None`` if the symptom is outside of errors.
        why: for a consequence, a description of the other line in the log.
        is_sure: for a consequence, True if only this bug explains both lines.
        needed: the call, argument or variable that the user must add.
        is_patched: True if the program ran with the patch.
        excluded: the reason why other lines of the log exclude the record, or "".
        message: the complete message that has the symptom.
    """

    record: Record
    symptom: str
    line: int
    text: str
    ground: Ground
    log: Log
    error: Optional[Raised] = None
    why: str = ""
    is_sure: bool = False
    needed: str = ""
    is_patched: bool = False
    excluded: str = ""
    message: str = ""

    @property
    def certain_ground(self) -> bool:
        return self.ground in ("frame", "line", "script", "number") or self.is_sure

    @property
    def follows(self) -> bool:
        """True if the bug only hides an earlier error."""
        has_cause = self.error is not None and self.error.before is not None
        return has_cause and self.record.name in MASKS and self.ground != "consequence"

    @property
    def is_before(self) -> bool:
        """True if the error did not end the program."""
        ending = self.log.ending
        return self.error is not None and (ending is None or self.error not in ending.chain)


def find(log: Log) -> list[Candidate]:
    """Return the candidates for a log, a script or a description."""
    if log.is_script:
        source = log.text
        lines = source.split("\n")
        return _once(
            Candidate(row, row.name, line, _output.shown(lines[line - 1]), "script", log)
            for row, line in script.find(log.name, source)
        )
    found = list(_in_errors(log))
    if log.cause is None or all(one.error is None or one.is_before for one in found):
        found += _outside(log, has_error=log.cause is not None and bool(log.cause.frames))
    if not found and log.is_words and not log.raised:
        found = _by_description(log)
    return _once(found)


def by_name(entries: Iterable[object], key: str) -> list[Candidate]:
    """Return candidates for the entries of a name or number on the command line."""
    records = [one for one in entries if isinstance(one, (Patch, Unpatched, Removed))]
    log = Log("", is_words=True)
    return [Candidate(record, "", 1, _output.shown(key), "number", log) for record in records]


def _once(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Keep the candidate with the best ground for each record and error."""
    every = list(candidates)
    best: dict[tuple[str, Optional[Raised]], Candidate] = {}
    for one in sorted(every, key=lambda one: _GROUNDS.index(one.ground)):
        best.setdefault((one.record.name, one.error), one)
    return [one for one in every if one in best.values()]


def _in_errors(log: Log) -> Iterator[Candidate]:
    seen: set[str] = set()
    chain = log.ending.chain if log.ending is not None else ()
    for error in [*chain, *reversed(log.raised)]:  # the last errors are the most important
        text = _normalised(error)
        if text in seen or len(seen) > MOST_ERRORS:
            continue
        seen.add(text)
        is_later = log.cause is not None and error is not log.cause and FOLLOW_UP_ERRORS.match(error.words) is not None
        for one in dict.fromkeys(one for one, _ in known.contained_in(text)):
            ground = _ground(one, error, text)
            if ground is not None and not (is_later and one.record.group == "event"):
                yield _candidate(one.record, one.symptom, log, error.message, ground, error)
        for record, consequence in known.consequences():
            symptom = next((one for one in consequence.says if known.place(known.pieces(one), text) >= 0), "")
            if symptom and _shows(consequence, text, log):
                yield _candidate(record, symptom, log, error.message, "consequence", error, consequence)


def _normalised(error: Raised) -> str:
    """Return the frames, source lines and message of an error as one text. The message is repeated with joined
    lines."""
    frames_ = [f"{frame.path} in {frame.function} {frame.source}" for frame in error.frames]
    message = error.text.split("\n")
    joined = "".join(message) if 1 < len(message) < 6 else ""
    return known.normalised(" | ".join([*frames_, " ".join(message), joined]))


def _shows(consequence: Consequence, text: str, log: Log) -> bool:
    """True if a log has the other line that a consequence needs in addition to the error with this text."""
    if consequence.unless and re.search(consequence.unless, text):
        return False
    found = (re.search(consequence.shows, line.text) for line in log.lines)
    return any(match is not None and all(part.lower() in text for part in match.groups()) for match in found)


def _candidate(
    record: Record,
    symptom: str,
    log: Log,
    index: int,
    ground: Ground,
    error: Optional[Raised] = None,
    consequence: Optional[Consequence] = None,
) -> Candidate:
    """Create the candidate for the line with this index."""
    is_event = record.group == "event"
    index = _line_with(symptom, log, error) if error is not None and is_event else index
    line = log.lines[index]
    is_patched = _is_patched(record, error, log)
    return Candidate(
        record,
        symptom,
        line.number,
        _output.shown(error.words if error is not None and error.words and not is_event else line.text),
        ground,
        log,
        error,
        consequence.why if consequence is not None else "",
        consequence is not None and consequence.is_sure,
        calls.needed(record.name, log.lines, index, is_patched),
        is_patched,
        needs.excluded(record, log.lines, error.last if error is not None else index, ground == "frame"),
        error.text if error is not None else line.text,
    )


def _is_described(log: Log) -> bool:
    return log.is_words and len(log.lines) == 1 and not describe.LOGGED.search(log.text)


def _line_with(symptom: str, log: Log, error: Raised) -> int:
    """Return the index of the line in an error's message that has the beginning of a symptom."""
    first = known.pieces(symptom)[0]
    found = (at for at in range(error.message, error.last + 1) if first in known.normalised(log.lines[at].text))
    return next(found, error.message)


def _is_patched(record: Record, error: Optional[Raised], log: Log) -> bool:
    """True if the program ran with the patch of a record.

    For a default patch, our start line or a frame of any patch proves this. For an opt-in patch, only its frame does.
    """
    paths = [frame.path for frame in error.frames if frames.is_patched(frame)] if error is not None else []
    if isinstance(record, Patch) and not record.default:
        file = f"{record.name.replace('-', '_')}.py"
        return any(re.split(r"[/\\]", path)[-1] == file for path in paths)
    return log.facts.is_patched or bool(paths)


def _ground(one: Known, error: Raised, text: str) -> Optional[Ground]:
    """Return the ground on which an error with this text makes a record a candidate, or ``None``."""
    through_lightning = any(frames.is_lightning(frame) for before in error.chain for frame in before.frames)
    is_passed = bool(one.places and frames.passing(one.places, error.frames))
    signs = {
        *_signs(one, error, text, error.words),
        "passed" * is_passed,
        "placed" * bool(one.places),
        "traceback" * bool(error.frames),
        "complete" * error.is_complete,
        "through Lightning" * through_lightning,
    }
    return rules.first(_IN_ERRORS, signs)


def _signs(one: Known, error: Optional[Raised], text: str, line: str) -> set[str]:
    """Return the signs in a text that are the same in errors and outside of them, see :data:`_IN_ERRORS`."""
    symptom = " ".join(one.pieces)
    is_removed = isinstance(one.record, Removed)
    return {
        one.record.group,
        "removed" * is_removed,
        "owned" * (is_removed and _has_owner(one, error, text)),
        "advisory" * (one.symptom in getattr(one.record, "advisories", ())),
        "distinct" * one.is_distinct,
        "environment" * known.is_outside(one.record),
        "weak" * (one.record.group != "event" and known.is_weak(one.symptom)),
        "questioned" * _is_questioned(one),
        "shared" * one.is_shared,
        "unpickled" * (symptom in ("weights only load failed", "weightsunpickler error: unsupported global")),
        "ambiguous" * any(words in symptom for words in known.AMBIGUOUS),
        "usual" * any(words in symptom for words in known.USUAL),
        "names Lightning" * ("lightning" in symptom),
        "possible" * (not is_removed and _is_possible(one, line)),
    }


def _is_questioned(one: Known) -> bool:
    is_asked = isinstance(one.record, Unpatched) and bool(one.record.impact.would_tell)
    return is_asked and one.symptom not in getattr(one.record, "proofs", ())


def _is_possible(one: Known, line: str) -> bool:
    """True if a line makes a record possible without a traceback, although other errors have the same words.

    This holds if the other errors are bugs of other patches, if the symptom is specific, or if the line has another
    name that occurs in the record.
    """
    if any(words in " ".join(one.pieces) for words in known.BY_FRAME):
        return False
    if one.is_shared and not known.is_ordinary(" ... ".join(one.pieces)):
        return True
    if _is_specific(one.symptom):
        return True
    texts = " ".join(known.texts(one.record))
    return any(name in texts and name not in one.symptom for name in _NAME.findall(line))


def _is_specific(symptom: str) -> bool:
    """True if a symptom has an identifier or several words in addition to the class of the error."""
    message = re.sub(r"^[\w.]+: ", "", symptom)
    return _NAME.search(message) is not None or len(re.findall(r"\w+", message)) >= MIN_WORDS


def with_same_error(log: Log) -> list[str]:
    """Return the names of patches whose bug ends in the same error as a log without a traceback."""
    error = log.ending
    if error is None or error.frames:
        return []
    text = known.normalised(error.words)
    errors = {record.name: record.impact.error for record in known.records() if isinstance(record, Patch)}
    of_any_class = "has no attribute '...'"
    return [
        name
        for name, words in errors.items()
        if words and of_any_class not in words and known.place(known.pieces(words), text) >= 0
    ]


def _has_owner(one: Known, error: Optional[Raised], text: str) -> bool:
    """True if an error names the class or function that lost the member, or none at all."""
    row = one.record
    assert isinstance(row, Removed)
    member = row.member.lower()
    if row.kind == "argument":
        return _is_argument_of(row, error, text)
    if row.kind == "attribute":
        owned = re.search(rf"(?:type object )?'(\w+)'(?: object)? has no attribute '{member}'", text)
        of_other_trainer = "transformers" in text or (owned and owned[1] == "trainer" and row.owner != "Trainer")
        return not of_other_trainer and (one.owner == "" or "_" in row.member)
    if row.kind == "name" and one.owner == "from":  # a line that was cut off before the module
        return re.search(rf"cannot import name '{re.escape(member)}'\s+from '", text) is None
    return True


def _is_argument_of(row: Removed, error: Optional[Raised], text: str) -> bool:
    """True if no other function than that of a removed argument refuses it."""
    class_, _, function = row.owner.lower().rpartition(".")
    calls_ = re.finditer(rf"(?:(\w+)\.)?(\w+)\(\) got an unexpected keyword argument '{row.member.lower()}'", text)
    for owner, called in ((call[1] or "", call[2]) for call in calls_):
        if called == "__init__" and owner not in ("", row.owner.lower()):
            return False
        if called != "__init__" and (called != function or owner not in ("", class_ or function)):
            return False
        if not owner and error is not None and error.is_complete:
            class_name = row.owner.partition(".")[0]
            return any(frames.is_lightning(frame) or class_name in frame.source for frame in error.frames)
    return True


def _outside(log: Log, has_error: bool) -> list[Candidate]:
    """Return the candidates for lines outside of errors. If an error ended the program, only for distinct lines."""
    inside = {index for error in log.raised for index in range(error.first, error.last + 1) if error.frames}
    starts, parts, position = [], [], 0
    for index, line in enumerate(log.lines):
        part = known.normalised(line.text) if index not in inside else ""
        if part:
            starts.append((position, index))
            parts.append(part)
            position += len(part) + 1
    text = " ".join(parts)
    found = []
    log_signs = {"raised" * bool(log.raised), "ended" * has_error, "described" * _is_described(log)}
    for one, at in known.contained_in(text):
        index = next((index for begin, index in reversed(starts) if begin <= at), 0)
        ground = rules.first(_OUTSIDE, _signs(one, None, text, log.lines[index].text) | log_signs)
        if ground is not None:
            found.append(_candidate(one.record, one.symptom, log, index, ground))
    for record, consequence in () if has_error else known.consequences():
        for symptom in consequence.says:
            at = known.place(known.pieces(symptom), text)
            index = next((index for begin, index in reversed(starts) if begin <= at), 0)
            if at >= 0 and _shows(consequence, known.normalised(log.lines[index].text), log):
                found.append(_candidate(record, symptom, log, index, "consequence", consequence=consequence))
    return sorted(found, key=lambda one: one.line)


def _by_description(log: Log) -> list[Candidate]:
    text = " ".join(line.text for line in log.lines)
    # Other records are found by their messages.
    records = {one.name: one for one in known.records() if isinstance(one, Patch) or one.name in describe.conditions()}
    asks_how = describe.ASKS_HOW.match(text) is not None
    names = describe.compare(
        text,
        [
            describe.Described(name, tuple(known.texts(record)), record.impact.error)
            for name, record in records.items()
            if not asks_how or record.group == "feature"
        ],
    )
    if describe.is_about_hang(text):
        hangs = {name for name, one in records.items() if any(map(describe.names_hang, known.texts(one)))}
        names = [name for name in names if name in hangs or records[name].group == "hang"]
    return [Candidate(records[name], "", 1, _output.shown(text), "words", log) for name in names]
