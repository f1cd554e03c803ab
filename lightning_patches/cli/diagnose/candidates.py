"""In: a log with its errors and facts, a script, or somebody's words. Out: what is known of it, each with its ground.

A ground is a frame of the code in question, a line that nothing else says, a line that other things may say, what else
the log has to show of a bug that comes out later as another error, or words alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Optional

from lightning_patches.cli import _output, _toggle
from lightning_patches.cli.diagnose import calls, describe, frames, known, script, verdicts
from lightning_patches.cli.diagnose.facts import Facts
from lightning_patches.cli.diagnose.frames import Frame
from lightning_patches.cli.diagnose.hangs import Hang
from lightning_patches.cli.diagnose.known import Known, Record
from lightning_patches.cli.diagnose.lines import Line
from lightning_patches.cli.diagnose.tracebacks import Raised
from lightning_patches.cli.diagnose.verdicts import OnRelease
from lightning_patches.engine import gate
from lightning_patches.known.removed import Removed
from lightning_patches.known.unpatched import Unpatched
from lightning_patches.patch import Consequence, Patch

Ground = Literal["frame", "line", "weak line", "consequence", "words", "script", "number"]
Source = Literal["requirement", "log", "installed", ""]

MOST_ERRORS = 200
"""Different errors of a log that are compared with what is known."""
MASKS = ("dataloader-error-unmasked", "worker-shutdown-error", "error-kept-in-ddp", "tuner-cleanup-on-error")
"""Bugs that put another error in the place of the first one."""
FOLLOWERS = re.compile(
    r"(?:[\w.]*\.)?(?:ChildFailedError|ProcessRaisedException|ProcessExitedException|SignalException|CalledProcessError|"
    r"BrokenPipeError|ConnectionResetError|ConnectionError|EOFError|RayTaskError|KeyboardInterrupt|SystemExit|"
    r"DistBackendError|CancelledError|(?:Base)?ExceptionGroup)\b|.{0,200}(?:closed by peer|reset by peer|Broken pipe)|"
    r"_?queue\.Empty\b|RuntimeError: DataLoader worker \(pid\S{0,3} [\d, ]+\) exited unexpectedly",
)
"""Errors that follow from the end of another process: of launchers, of ranks whose peer is gone, of a DataLoader."""


@dataclass
class Log:
    """What is looked through.

    Args:
        name: the file's, or the program's; "" for words.
        lines: what was read of it.
        raised: its errors.
        facts: what else it tells.
        is_script: it is a script, and no log.
        is_words: it is somebody's description.
        hangs: the last report of the hang watch in it, or in each file of a directory.
        left_out: a sentence about each part that was not read.
    """

    name: str
    lines: list[Line] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    is_script: bool = False
    is_words: bool = False
    hangs: list[Hang] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


@dataclass
class Match:
    """A record that may explain what is looked through.

    Args:
        record: the patch, the bug without one, or what is no bug.
        symptom: as the record has it; "" where somebody's words come close to the record.
        line: number of the line where it shows, from 1.
        text: that line.
        ground: what it rests on.
        error: what says so, ``None`` for what stands outside of one.
        file: the log.
        why: of a consequence, what else the log shows.
        is_sure: of a consequence, that nothing else brings the two together.
        verdicts: on it, in the releases in question.
        source: what tells the releases.
        cause: it is the one to begin with.
        follows: it came of another error, which is not known.
        is_before: it is of an error that did not end the program.
        facts: of the log.
        needed: the call, argument or variable that the patch needs to mend this.
        is_patched: the log is of a program that ran with the patch.
    """

    record: Record
    symptom: str
    line: int
    text: str
    ground: Ground
    error: Optional[Raised] = None
    file: str = ""
    why: str = ""
    is_sure: bool = False
    verdicts: list[OnRelease] = field(default_factory=list)
    source: Source = ""
    cause: bool = False
    follows: bool = False
    is_before: bool = False
    facts: Facts = field(default_factory=Facts)
    needed: str = ""
    is_patched: bool = False

    @property
    def certain_ground(self) -> bool:
        return self.ground in ("frame", "line", "script", "number") or self.is_sure

    @property
    def ruled_out(self) -> bool:
        """The releases in question do not have it. What is installed here rules nothing out that the log is sure of."""
        lacking = bool(self.verdicts) and all(one.verdict in verdicts.WITHOUT for one in self.verdicts)
        return lacking and not (self.source == "installed" and self.certain_ground)

    @property
    def kind(self) -> str:
        """``"found"`` needs a ground that nothing else explains, and that every release in question has the bug."""
        if self.ruled_out:
            return "ruled out"
        if self.follows:
            return "follows"
        if known.is_no_bug(self.record) and self.certain_ground:
            return "found"
        has = [one.verdict not in gate.ELSEWHERE for one in self.verdicts]
        is_there = bool(has) and (all(has) if self.source != "installed" else any(has))
        return "found" if self.certain_ground and is_there else "possible"


def find(one: Log) -> list[Match]:
    """What is known of a log, a script or words. Which of it is the cause, and in which releases, is told later."""
    if one.is_script:
        source = one.text
        rows = script.find(one.name, source)
        matches = [
            Match(row, row.name, line, _output.shown(source.split("\n")[line - 1]), "script") for row, line in rows
        ]
    else:
        ended = ending(one.raised)
        matches = list(_in_errors(one))
        if ended is None or not any(match.error is not None and match.error in ended.chain for match in matches):
            matches += _outside(one, has_error=ended is not None and bool(ended.frames))
        if not matches and one.is_words and not one.raised:
            matches = _from_words(one)
    for match in matches:
        match.file, match.facts = one.name, one.facts
    return _once(matches)


def by_name(named: Iterable[object], asked: str) -> list[Match]:
    """What somebody asks for by its name or number."""
    records = [one for one in named if isinstance(one, (Patch, Unpatched, Removed))]
    return [Match(record, "", 1, _output.shown(asked), "number") for record in records]


def ending(raised: list[Raised]) -> Optional[Raised]:
    """The error that ended the program: the last one, of several ranks that of the first rank that failed, of an
    exception group the first one; not what launchers and ranks without a peer say of it."""
    told = [error for error in raised if error.words and not FOLLOWERS.match(error.words)]
    told = [error for error in told if error.frames] or told
    if not told:
        return next((error for error in reversed(raised) if error.words), raised[-1] if raised else None)
    if told[-1].group:
        told = [next(error for error in told if error.group == told[-1].group)]
    last_of = {error.rank: error for error in told}
    return min(last_of.values(), key=lambda error: error.first) if len(last_of) > 1 else told[-1]


def is_lightning(frame: Frame) -> bool:
    return bool(frames.upstream_path(frame.path)) or _is_ours(frame) or _APP.search(frame.path) is not None


_APP = re.compile(r"[/\\]lightning[/\\]app[/\\]")
"""The App framework of Lightning below 2.3, for which there are no patches."""


def _is_ours(frame: Frame) -> bool:
    return re.search(r"[/\\]lightning_patches[/\\]patches[/\\]", frame.path) is not None


def own_frames(wanted: tuple[str, ...], error: Raised) -> list[int]:
    """Indices of the frames that run through one of these places."""
    found = []
    for index, frame in enumerate(error.frames):
        inside = frames.upstream_path(frame.path)
        path = f"/lightning/{inside}" if inside else frame.path.replace("\\", "/")
        where = f"{path} in {frame.function}"
        if any(part in where for part in wanted):
            found.append(index)
    return found


def _in_errors(one: Log) -> Iterator[Match]:
    seen: set[str] = set()
    ended = ending(one.raised)
    for error in [*(ended.chain if ended is not None else ()), *reversed(one.raised)]:  # the last ones matter most
        said = _searched(error)
        if said in seen or len(seen) > MOST_ERRORS:
            continue
        seen.add(said)
        for what in dict.fromkeys(what for what, _ in known.said_in(said)):
            ground = _ground(what, error, said, one)
            if ground is not None:
                yield _match(what.record, what.symptom, error, ground, one)
        for record, consequence in known.consequences():
            told = next((one for one in consequence.says if known.place(known.pieces(one), said) >= 0), "")
            if told and _shows(consequence, said, one):
                match = _match(record, told, error, "consequence", one)
                match.why, match.is_sure = consequence.why, consequence.is_sure
                yield match


def _searched(error: Raised) -> str:
    """An error as symptoms are compared with it: its frames, the lines that they ran, and its message, also as if a
    terminal had broken that."""
    frames_ = [f"{frame.path} in {frame.function} {frame.source}" for frame in error.frames]
    message = error.text.split("\n")
    joined = "".join(message) if 1 < len(message) < 6 else ""
    return known.normalised(" | ".join([*frames_, " ".join(message), joined]))


def _shows(consequence: Consequence, said: str, one: Log) -> bool:
    if consequence.unless and re.search(consequence.unless, said):
        return False
    found = (re.search(consequence.shows, line.text) for line in one.lines)
    return any(match is not None and all(part.lower() in said for part in match.groups()) for match in found)


def _match(record: Record, symptom: str, error: Raised, ground: Ground, one: Log) -> Match:
    line = one.lines[error.message]
    match = Match(record, symptom, line.number, _output.shown(error.words or line.text), ground, error)
    match.is_patched = _is_patched(record, error, one)
    match.needed = calls.needed(record.name, one.lines, error.message, match.is_patched)
    return match


def _ground(what: Known, error: Raised, said: str, one: Log) -> Optional[Ground]:
    """What it rests on that an error says this; ``None`` if that is not enough."""
    if isinstance(what.record, Removed):
        return "line" if _is_of(what, error, said) else None
    chain = error.chain
    runs_through = any(is_lightning(frame) for before in chain for frame in before.frames)
    is_advisory = what.symptom in getattr(what.record, "advisories", ())
    is_environment = what.record.group == "environment"
    if what.places and own_frames(what.places, error) and (runs_through or is_environment):
        return "frame"
    text = " ".join(what.pieces)
    if is_environment and what.is_distinct:
        if text in ("weights only load failed", "weightsunpickler error: unsupported global"):
            return "weak line" if not error.frames or runs_through else None
        return "line"
    is_weak = any(words in text for words in known.WEAK)
    if not error.frames and (is_environment or (is_weak and not what.is_shared)):
        return "weak line"
    if not what.is_distinct and not is_advisory:
        return "weak line" if not error.frames and _is_possible(what, error.words) else None
    if error.is_complete and not runs_through and not is_advisory and "lightning" not in text:
        return None  # it did not come about in Lightning
    if is_weak:
        return "weak line"
    return "line" if not error.frames or not error.is_complete or not what.places or is_advisory else "weak line"


_NAME = re.compile(r"\b(?:\w+_\w+|[A-Z]+[a-z]+[A-Z]\w*)\b")


MIN_WORDS = 5
"""A symptom of as many words is specific enough to make a bug possible without a traceback."""


def _is_possible(what: Known, line: str) -> bool:
    """True if a line makes a record possible without a traceback, although other errors have the same words.

    Either only other patches' bugs have them, or the symptom is specific, or the line names what else the record names.
    """
    if what.is_shared and not known.is_ordinary(" ... ".join(what.pieces)):
        return True
    if _is_specific(what.symptom):
        return True
    texts = " ".join(known_texts(what.record))
    return any(name in texts and name not in what.symptom for name in _NAME.findall(line))


def _is_specific(symptom: str) -> bool:
    """True if a symptom has a name of code, or several words, besides the class of the error."""
    message = re.sub(r"^[\w.]+: ", "", symptom)
    return _NAME.search(message) is not None or len(re.findall(r"\w+", message)) >= MIN_WORDS


def with_same_error(one: Log) -> list[str]:
    """Names of the patches whose bug ends in the same error as a log that shows no traceback."""
    error = ending(one.raised)
    if error is None or error.frames:
        return []
    said = known.normalised(error.words)
    errors = {record.name: record.impact.error for record in known.records() if isinstance(record, Patch)}
    of_any_class = "has no attribute '...'"
    return [
        name
        for name, words in errors.items()
        if words and of_any_class not in words and known.place(known.pieces(words), said) >= 0
    ]


def _is_of(what: Known, error: Optional[Raised], said: str) -> bool:
    """Whether what is said of a removed name is said of its own class or function."""
    row = what.record
    assert isinstance(row, Removed)
    if row.kind == "argument":
        function = row.owner.rpartition(".")[2]
        for found in re.finditer(
            rf"(?:(\w+)\.)?(\w+)\(\) got an unexpected keyword argument '{row.member.lower()}'", said
        ):
            owner, called = found[1] or "", found[2]
            if called == "__init__":
                if owner and owner != row.owner.lower():
                    return False
            elif called != function.lower() or (owner and owner != row.owner.partition(".")[0].lower()):
                return False
            if not owner and error is not None and error.is_complete:
                return any(map(is_lightning, error.frames))
        return True
    if row.kind == "attribute":
        if "transformers" in said:
            return False  # whose Trainer is another one
        named = re.search(rf"(?:type object )?'(\w+)'(?: object)? has no attribute '{row.member.lower()}'", said)
        if named and named[1] == "trainer" and row.owner != "Trainer":
            return False
        return what.owner == "" or "_" in row.member
    if row.kind == "name" and what.owner == "from":  # without the module, in a line that was cut off
        return re.search(rf"cannot import name '{re.escape(row.member.lower())}'\s+from '", said) is None
    return True


def _is_patched(record: Record, error: Optional[Raised], one: Log) -> bool:
    """Whether the program ran with a patch: by our line, or a frame of ours; an opt-in one by its own frame alone."""
    ours = [frame.path for frame in error.frames if _is_ours(frame)] if error is not None else []
    if isinstance(record, Patch) and not record.default:
        own = f"{record.name.replace('-', '_')}.py"
        return any(re.split(r"[/\\]", path)[-1] == own for path in ours)
    return one.facts.is_patched or bool(ours)


def _outside(one: Log, has_error: bool) -> list[Match]:
    """What the lines outside of errors say; in a log that ends with an error, what nothing else says alone."""
    inside = {index for error in one.raised for index in range(error.first, error.last + 1) if error.frames}
    plain = [(index, line) for index, line in enumerate(one.lines) if index not in inside]
    starts, parts, position = [], [], 0
    for index, line in plain:
        part = known.normalised(line.text)
        if part:
            starts.append((position, index))
            parts.append(part)
            position += len(part) + 1
    said = " ".join(parts)
    found = []
    for what, at in known.said_in(said):
        index = next((index for begin, index in reversed(starts) if begin <= at), 0)
        text = " ".join(what.pieces)
        is_weak = any(words in text for words in known.WEAK)
        if isinstance(what.record, Removed):
            if not _is_of(what, None, said):
                continue
            ground: Ground = "line"
        elif what.symptom in getattr(what.record, "advisories", ()) or (what.is_distinct and not is_weak):
            ground = "line"
        elif (is_weak and not what.is_shared) or (not one.raised and _is_possible(what, one.lines[index].text)):
            ground = "weak line"
        else:
            continue
        if has_error and (ground != "line" or what.record.group == "feature"):
            continue
        ground = "weak line" if has_error and not isinstance(what.record, Removed) else ground
        line = one.lines[index]
        match = Match(what.record, what.symptom, line.number, _output.shown(line.text), ground)
        match.is_patched = _is_patched(what.record, None, one)
        match.needed = calls.needed(what.record.name, one.lines, index, match.is_patched)
        found.append(match)
    return sorted(found, key=lambda match: match.line)


def _from_words(one: Log) -> list[Match]:
    said = " ".join(line.text for line in one.lines)
    records = {record.name: record for record in known.records()}
    asks_how = describe.ASKS_HOW.match(said) is not None
    names = describe.compare(
        said,
        [
            describe.Described(name, tuple(known_texts(record)), record.impact.error)
            for name, record in records.items()
            if not asks_how or record.group == "feature"
        ],
    )
    if is_of_a_hang(said):
        hangs = {
            name for name, record in records.items() if any(STANDS_STILL.search(t.lower()) for t in known_texts(record))
        }
        names = [name for name in names if name in hangs or records[name].group == "hang"]
    return [Match(records[name], "", 1, _output.shown(said), "words") for name in names]


def known_texts(record: Record) -> list[str]:
    return [*record.impact.symptoms, record.title, record.impact.summary]


STANDS_STILL = re.compile(
    r"\b(?:hangs?|hung|hanging|deadlock\w*|st(?:ands?|ood|anding) still|nothing happens)\b|卡住|卡死"
)
"""Somebody's words for a hang."""
_MAY_STAND_STILL = re.compile(r"\b(?:stuck|freezes?|frozen)\b")
_NO_PROGRAM = re.compile(
    r"\b(?:layers?|param\w*|weights?|(?:batch ?)?norms?|batchnorm\w*|backbone|encoder|loss|losses|learning rate|lr|"
    r"accuracy|metrics?|unfrozen|\w*finetuning|requires_grad)\b"
)
"""What else is stuck or frozen."""


def is_of_a_hang(said: str) -> bool:
    """Whether somebody says that a program stands still."""
    said = said.lower()
    return bool(STANDS_STILL.search(said) or (_MAY_STAND_STILL.search(said) and not _NO_PROGRAM.search(said)))


def _once(matches: list[Match]) -> list[Match]:
    """Each record once for an error."""
    order: tuple[Ground, ...] = ("frame", "script", "number", "line", "consequence", "weak line", "words")
    found: dict[tuple[str, int], Match] = {}
    for match in sorted(matches, key=lambda match: order.index(match.ground)):
        found.setdefault((match.record.name, id(match.error) if match.error is not None else 0), match)
    return [match for match in matches if any(match is one for one in found.values())]


def judge(matches: list[Match], setting: _toggle.Toggle, required: Optional[list[tuple[str, str]]]) -> None:
    """Give each match its verdicts: on what the command line names, or what the log tells, or what is installed."""
    assert setting.selection is not None
    for match in matches:
        facts = match.facts
        if required is not None:
            match.source = "requirement"
            named = required
        else:
            name = facts.distribution or "lightning"
            named = [(name, version) for version in facts.releases]
            match.source = "log" if named else "installed"
        if named or match.source == "requirement":
            match.verdicts = [
                one
                for name, version in named
                for one in verdicts.by_number(match.record, name, version, setting.selection)
            ]
        else:
            spaces = {facts.distribution.replace("-", "_")} if facts.distribution else set()
            match.verdicts = verdicts.installed(match.record, spaces, setting)


_KINDS = ("found", "possible", "follows", "ruled out")


def ordered(matches: list[Match], logs: list[Log]) -> list[Match]:
    """One match for each record, the cause first: what the error that ended the program says, with the best ground."""
    endings = [ended for ended in (ending(one.raised) for one in logs) if ended is not None]
    chains = [ended.chain for ended in endings]
    ends = {id(error) for chain in chains for error in chain}
    for match in matches:
        match.is_before = match.error is not None and id(match.error) not in ends
        before = match.error.before if match.error is not None else None
        match.follows = match.record.name in MASKS and before is not None and match.ground != "consequence"
    order = sorted(matches, key=lambda match: _rank(match, chains))
    once = list({match.record.name: match for match in reversed(order)}.values())
    once.sort(key=lambda match: _rank(match, chains))
    first = next((match for match in once if match.kind in ("found", "possible") and not match.is_before), None)
    if first is not None and first.kind == "found":
        first.cause = True
    elif first is None and once and once[0].kind == "follows" and unknown(once) is None:
        once[0].cause = True
    return once


def _rank(match: Match, chains: list[list[Raised]]) -> tuple[object, ...]:
    grounds = ("consequence", "script", "number", "frame", "line", "weak line", "words")
    chain = next((chain for chain in chains if any(error is match.error for error in chain)), [])
    at = next((index for index, error in enumerate(chain) if error is match.error), None)
    is_ending = at is not None or not chains
    caused = chain[-1].is_caused if chain else False
    place = (len(chain) - 1 - at if caused else at) if at is not None else 99
    own = own_frames(known.places(match.record), match.error) if match.error is not None else []
    last = len(match.error.frames) - 1 if match.error is not None else 0
    is_environment = match.record.group == "environment"
    return (
        match.kind == "ruled out",
        not is_ending,
        match.kind == "follows",
        _KINDS.index(match.kind) if match.ground != "consequence" else 0,
        place,
        match.is_patched and not match.needed,
        not (is_environment and last in own),
        grounds.index(match.ground),
        not match.is_sure,
        is_environment,
        isinstance(match.record, Removed) and match.record.kind == "module",
        isinstance(match.record, Patch) and not match.record.default and match.ground != "frame",
        own[0] if own else 0,
        match.line,
        match.record.name,
    )


def unknown(matches: list[Match]) -> Optional[Raised]:
    """The first error of the chain that ended the program, if that is no known bug and what is found followed it."""
    follows = [match for match in matches if match.kind == "follows" and match.error is not None]
    if any(match.kind in ("found", "possible") and match.error is not None for match in matches) or not follows:
        return None
    return follows[0].error.chain[0] if follows[0].error is not None else None
