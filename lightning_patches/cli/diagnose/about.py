"""The sentences about the subject of an answer: a hang, a start, an error, the end of a program, or a match."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Sequence
from typing import Any, Callable, Optional

from lightning_patches.cli import _output
from lightning_patches.cli.diagnose import about_match, advice, facts, frames, hangs, hints, rules
from lightning_patches.cli.diagnose.answer import Answer, Text
from lightning_patches.cli.diagnose.hangs import Hang
from lightning_patches.cli.diagnose.log import Log
from lightning_patches.cli.diagnose.matches import Match, OutOfSync
from lightning_patches.cli.diagnose.start import StalledStart
from lightning_patches.cli.diagnose.tracebacks import CELL, Raised
from lightning_patches.known import lookup
from lightning_patches.known.coverage import Fix
from lightning_patches.known.lookup import OpenReport

MAX_RANKS = 8
"""Most missing ranks that are listed. More ranks are counted."""

_DOCTOR = "`lightning-patches doctor` checks the environment."
_IN_WORDS = 'has a wrong result, describe it, as in `lightning-patches diagnose "epoch 0 is too short"`.'

_LOUD = re.compile(r"(?<![\w.-])(?:ERROR|FATAL|CRITICAL|PANIC|[Ee]rror|fatal|panic)\]?: |terminate called|core dumped")
"""Matches lines that programs of other languages write if they fail."""
_ON_ERRORS: tuple[rules.Rule[str], ...] = (
    (set(), {"words"}, "Pass the lines below it as well: the last line of a traceback has the error."),
    (
        {"cell", "number"},
        set(),
        "Look at a cell of the notebook, line {number}, the last line of your code in the traceback.",
    ),
    ({"cell"}, set(), "Look at a cell of the notebook."),
    ({"own", "number"}, set(), "Look at {path}, line {number}, the last line of your code in the traceback."),
    ({"own"}, set(), "Look at {path}."),
    (
        {"traceback"},
        set(),
        "Look at the line of your program that leads to the error. This excerpt has no line of your program.",
    ),
    (set(), set(), "If you have the whole traceback (the `File ...` lines), pass all of it."),
)
"""Advice on an error that is no known bug."""
_ON_NOTHING: tuple[rules.Rule[tuple[str, str]], ...] = (
    (
        {"script"},
        set(),
        (
            "{name} uses no name that Lightning 2.x has removed.",
            "`lightning-patches diagnose -- python {quoted}` runs the script, and explains its error.",
        ),
    ),
    (
        {"words"},
        set(),
        (
            "I know no bug that fits this description.",
            "Pass the traceback or the log of the program, or describe the problem in other words.",
        ),
    ),
    ({"status"}, {"failed"}, ("The program ended well.", f"If it {_IN_WORDS}")),
    (
        {"SIGKILL"},
        set(),
        (
            "{signal} ended the program, and its standard error has no error.",
            f"Often the cause is the out-of-memory killer: look at `dmesg`. {hangs.MORE_MEMORY}",
        ),
    ),
    ({"signal"}, set(), ("{signal} ended the program, and its standard error has no error.", _DOCTOR)),
    (
        {"status"},
        set(),
        ("The program ended with status {status}, and its standard error has no error.", f"Read its output. {_DOCTOR}"),
    ),
    (
        {"loud"},
        {"ruled out"},
        (
            "I don't know the error in line {number}: `{loud}`.",
            f"Read the lines around it. If a program of Python wrote it, pass its traceback as well. {_DOCTOR}",
        ),
    ),
    ({"ruled out"}, set(), ("The log shows no bug of this release.", _DOCTOR)),
    (
        set(),
        set(),
        (
            "The log shows no error.",
            "Write errors to the log as well (`2>&1`), and pass it again. If the program ends well but " + _IN_WORDS,
        ),
    ),
)
"""Verdict and advice if there is no match and no error."""


def write(one: Answer) -> Text:
    """Return the sentences about the subject of an answer."""
    return _ABOUT[type(one.subject)](one, one.subject)


def _about_number(one: Answer, found: Any) -> Text:
    entry = lookup.in_words(found)
    reason = str(entry["verdict"])
    return Text(f"#{found.numbers[0]}: {entry['title']}", entry["do"], [f"{reason[0].upper()}{reason[1:]}"])


def _about_hang(one: Answer, hang: Hang) -> Text:
    file = _output.printable(hang.file)
    why = [f"{file}: report {hang.count} of the hang watch."] if hang.file else []
    more = [
        f"{_output.printable(other.file)}: {_output.printable(other.verdict)}. {other.do}" for other in one.hangs[1:]
    ]
    return Text(f"{_output.printable(hang.verdict)}.", hang.do, why, more)


def _about_start(one: Answer, begun: StalledStart) -> Text:
    why = [one.place(begun.file, begun.line) + _output.shown(begun.text)]
    if begun.is_twice:
        do = (
            "Start as many tasks as `devices` says: `srun --ntasks-per-node=N` (`#SBATCH --ntasks-per-node=N`) with "
            "Trainer(devices=N); or start a single task without srun."
        )
        return Text(stalled(begun), do, why)
    do = f"If the program hung: {hang_watch(one.logs)}"
    return Text(f"The program may hang at its start. {stalled(begun)}", do, why)


def stalled(begun: StalledStart) -> str:
    """Return the description of a start at which a log ends."""
    missing = [str(rank) for rank in range(begun.world_size) if rank not in begun.ranks]
    if begun.is_twice:
        return (
            "Each rank runs twice: SLURM started another number of tasks than Trainer(devices=...), and each task "
            "starts all ranks."
        )
    joined = f"Only {len(begun.ranks)} of {begun.world_size} ranks log that they join."
    if not missing:
        joined = f"All {begun.world_size} ranks log that they join."
    elif len(missing) <= MAX_RANKS:
        ranks = f"rank {missing[0]}" if len(missing) == 1 else f"ranks {', '.join(missing)}"
        joined = f"Nothing shows that {ranks} of {begun.world_size} joined."
    return f"The log ends before rank zero logs that all processes are registered. {joined}"


def out_of_sync(one: OutOfSync) -> str:
    """Return the advice for a GradientSyncError."""
    what = (
        "At that step, a change of the named tensors bypasses DDP: the script calls a part of the module directly, a "
        "parameter was unfrozen or added after the set-up, or only some ranks make the change"
    )
    if not one.suspects:
        return f"{what}."
    suspects = ", ".join(one.suspects)
    return f"{what}. Known bugs with this effect: {suspects}. Run the program once with the patches and the check."


def hang_watch(logs: Sequence[Log]) -> str:
    """Return the advice to use the hang watch and `doctor`."""
    doctor = "`lightning-patches doctor`, run in the same place, checks launcher variables and ports."
    return f"{advice.hang_watch(logs)}. {doctor}"


def _about_error(one: Answer, error: Raised) -> Text:
    if error.type == "KeyboardInterrupt" and error is not one.unknown:
        return _about_interrupt(one, error)
    beginning, own = "I don't know this error", _own_frame(error)
    if error is one.unknown:
        beginning = "I don't know the first error (the later ones are its consequences)"
        own = own or (_own_frame(one.ending) if one.ending is not None else None)
    signs = {"words" * bool(error.words), "traceback" * bool(error.frames)}
    signs |= {"own", "cell" * (own.path == CELL), "number" * bool(own.number)} if own is not None else set()
    do = rules.first(_ON_ERRORS, signs) or ""
    do = do.format(path=_output.printable(own.path), number=own.number) if own is not None else do
    own_advice = hints.in_message(error.text)
    if own_advice:
        do = hints.first(own_advice, do if error.frames else "")
    words = f": `{_output.shown(error.words)}`" if error.words else ", without its message"
    return Text(f"{beginning}{words}.", do, more=[_DOCTOR])


def _about_interrupt(one: Answer, error: Raised) -> Text:
    own = _own_frame(error)
    place = f"{_output.printable(own.path)}, line {own.number}" if own is not None and own.number else ""
    why = [f"The program was at {place}."] if place else []
    do = f"If the program hung: {hang_watch(one.logs)}"
    return Text("The program was interrupted (KeyboardInterrupt), and its log shows no error.", do, why)


def _own_frame(error: Raised) -> Optional[frames.Frame]:
    """Return the last frame in the user's files."""
    own = [frame for frame in facts.own(error.frames) if not frames.is_lightning(frame)]
    return own[-1] if own else None


def _about_out_of_sync(one: Answer, found: OutOfSync) -> Text:
    why = [one.place(found.file, found.line) + found.text]
    return Text("The ranks train different models (GradientSyncError).", out_of_sync(found), why)


def _about_nothing(one: Answer, _: None) -> Text:
    log, name = one.logs[0], signal_name(one.status or 0)
    signs = {
        "script" * (log.is_script and not one.matches),
        "words" * log.is_words,
        "status" * (one.status is not None),
        "failed" * bool(one.status),
        "signal" * bool(name),
        name,
        "ruled out" * any(match.kind == "ruled out" and not match.excluded for match in one.matches),
    }
    loud = next((line for line in log.lines if _LOUD.search(line.raw) and not log.is_script), None)
    signs.add("loud" * (loud is not None))
    verdict, do = rules.first(_ON_NOTHING, signs) or ("", "")
    fields = {"name": _output.printable(log.name), "quoted": shlex.quote(log.name)}
    if loud is not None:
        fields.update(number=str(loud.number), loud=_output.shown(loud.raw))
    return Text(verdict.format(signal=name, status=one.status, **fields), do.format(**fields))


def signal_name(status: int) -> str:
    """Return the name of the signal of a shell's exit status, or ""."""
    try:
        return signal.Signals(status - 128).name
    except ValueError:
        return ""


_ABOUT: dict[type, Callable[[Answer, Any], Text]] = {
    Fix: _about_number,
    OpenReport: _about_number,
    Hang: _about_hang,
    Match: about_match.write,
    OutOfSync: _about_out_of_sync,
    StalledStart: _about_start,
    Raised: _about_error,
    type(None): _about_nothing,
}
