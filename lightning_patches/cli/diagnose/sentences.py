"""Create all sentences of an answer."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Sequence
from typing import NamedTuple, Optional

import lightning_patches
from lightning_patches.cli import _output, autostart
from lightning_patches.cli.diagnose import calls, candidates, facts, frames, hangs, known
from lightning_patches.cli.diagnose.answer import Answer, Compromised
from lightning_patches.cli.diagnose.facts import Start
from lightning_patches.cli.diagnose.hangs import Hang
from lightning_patches.cli.diagnose.log import Log
from lightning_patches.cli.diagnose.matches import Match
from lightning_patches.cli.diagnose.start import StalledStart
from lightning_patches.cli.diagnose.sync import OutOfSync
from lightning_patches.cli.diagnose.tracebacks import CELL, Raised
from lightning_patches.engine import gate
from lightning_patches.known import lookup, records
from lightning_patches.known.coverage import Fix
from lightning_patches.known.installed import find_installed
from lightning_patches.known.lookup import OpenReport
from lightning_patches.known.unpatched import ADVICE, WITH_PKG_RESOURCES, Unpatched
from lightning_patches.patch import Patch
from lightning_patches.patches.removed import Removed

WORKAROUNDS = {
    "rich-progress-bar": '`pip install "rich<14.1"`',
    "import-without-pkg-resources": f'`pip install "{WITH_PKG_RESOURCES}"`',
    "torchmetrics-compare-version": '`pip install "torchmetrics<0.11"`',
    "mpi-without-library": "`pip uninstall mpi4py`",
    "scheduler-types": '`pip install "torch<2"`',
    "scheduler-choices": '`pip install "torch<2"`',
    "plateau-waits-for-validation": '`"strict": False` in the scheduler\'s configuration',
    "fused-optimizer-clipping": "an optimizer without `fused=True`",
    "interval-without-validation": "Trainer without `val_check_interval`",
}
"""Patch -> advice that needs neither the patch nor another Lightning."""
MAX_RANKS = 8
"""Most missing ranks that are listed. More ranks are counted."""

_WAITS_IN_GROUP = re.compile(
    r"\branks? \d[\d, to]{0,80}(?:and (?:\d{1,6}|others) )?in \w{1,60} \d{1,9} of group [^\s;]{1,64}"
)
_OUTSIDE = {
    "feature": "No release of Lightning has this",
    "environment": "The cause is outside of Lightning",
}
"""Verdicts on records that are not bugs of Lightning."""
_SCRIPT = "SCRIPT"
"""Placeholder for an unknown program."""
_WATCHED = "`LIGHTNING_PATCHES_HANG_TIMEOUT=300 lightning-patches run {}`"
_DOCTOR = "`lightning-patches doctor` checks the environment."
_IN_WORDS = 'has a wrong result, describe it, as in `lightning-patches diagnose "epoch 0 is too short"`.'
_OTHERS = (
    ("follows", "It hid an earlier error"),
    ("found", "Also found"),
    ("possible", "Perhaps also"),
    ("ruled out", "Ruled out, since the release does not have it"),
)


class Text(NamedTuple):
    """The sentences of an answer.

    Args:
        verdict: the first line.
        do: what to do.
        why: lines that explain the verdict.
        more: other lines.
    """

    verdict: str
    do: str
    why: Sequence[str] = ()
    more: Sequence[str] = ()


def write(one: Answer) -> Text:
    """Return the sentences of an answer."""
    text = _about_subject(one)
    more = [*text.more, *_other_matches(one), *_same_error(one), *_left_out(one.logs)]
    if isinstance(one.subject, Match) and one.subject.ground == "words":
        more = list(dict.fromkeys(more))
    written = _written_by(one) if not one.hangs else ""
    more = [written, *more] if written else more
    verdict, do = _about_a_hang(one, text) if one.is_about_hang else (text.verdict, text.do)
    if one.compromised is None:
        return Text(verdict, do, text.why, more)
    line, is_installed = one.compromised.line, one.compromised.is_installed
    where = f" (line {line} of the log)" if line else " (it is installed here)" if is_installed else ""
    alert = f"{_alert(one.compromised)}{where}."
    return Text(alert, f"{ADVICE[0].upper()}{ADVICE[1:]}.", text.why, [f"Also: {verdict} {do}", *more])


def _about_a_hang(one: Answer, text: Text) -> tuple[str, str]:
    """Return the verdict and the advice for a user who describes a hang."""
    verdict = f"{text.verdict} If several ranks hang, the hang watch shows where."
    do = f"If several ranks hang: {_hang_watch(one.logs)}"
    return verdict if one.main is not None else "A program that hangs.", do


def _about_subject(one: Answer) -> Text:
    subject = one.subject
    if isinstance(subject, (Fix, OpenReport)):
        entry = lookup.in_words(subject)
        reason = str(entry["verdict"])
        return Text(f"#{subject.numbers[0]}: {entry['title']}", entry["do"], [f"{reason[0].upper()}{reason[1:]}"])
    if isinstance(subject, Hang):
        return _about_hang(one, subject)
    if isinstance(subject, Match):
        return _about_match(one, subject)
    if isinstance(subject, OutOfSync):
        place = _place(one, subject.file, subject.line)
        return Text(
            "The ranks train different models (GradientSyncError).", out_of_sync(subject), [place + subject.text]
        )
    if isinstance(subject, StalledStart):
        return _about_start(one, subject)
    if isinstance(subject, Raised):
        if subject is one.unknown:
            return _about_error(
                subject, "I don't know the first error (the later ones are its consequences)", one.ending
            )
        if subject.type == "KeyboardInterrupt":
            return _about_interrupt(one, subject)
        return _about_error(subject, "I don't know this error")
    return _about_nothing(one)


def _about_hang(one: Answer, hang: Hang) -> Text:
    file = _output.printable(hang.file)
    why = [f"{file}: report {hang.count} of the hang watch."] if hang.file else []
    more = [
        f"{_output.printable(other.file)}: {_output.printable(other.verdict)}. {other.do}" for other in one.hangs[1:]
    ]
    return Text(f"{_output.printable(hang.verdict)}.", hang.do, why, more)


def _about_start(one: Answer, begun: StalledStart) -> Text:
    why = [_place(one, begun.file, begun.line) + _output.shown(begun.text)]
    if begun.is_twice:
        do = (
            "Start as many tasks as `devices` says: `srun --ntasks-per-node=N` (`#SBATCH --ntasks-per-node=N`) with "
            "Trainer(devices=N); or start a single task without srun."
        )
        return Text(stalled(begun), do, why)
    do = f"If the program hung: {_hang_watch(one.logs)}"
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


def _hang_watch(logs: Sequence[Log]) -> str:
    program = next((log.facts.start.program for log in logs if log.facts.start.program), _SCRIPT)
    return (
        f"{_WATCHED.format(program)} reports after 300 seconds which rank is missing, and where it is. "
        "`lightning-patches doctor`, run in the same place, checks launcher variables and ports."
    )


def _about_error(error: Raised, beginning: str, later: Optional[Raised] = None) -> Text:
    words = f": `{_output.shown(error.words)}`" if error.words else ", without its message"
    own = _own_frame(error) or (_own_frame(later) if later is not None else None)
    if not error.words:
        do = "Pass the lines below it as well: the last line of a traceback has the error."
    elif own is not None:
        path = "a cell of the notebook" if own.path == CELL else _output.printable(own.path)
        line = f"Look at {path}, line {own.number}, the last line of your code in the traceback."
        do = line if own.number else f"Look at {path}."
    elif error.frames:
        do = "Look at the line of your program that leads to the error. This excerpt has no line of your program."
    else:
        do = "If you have the whole traceback (the `File ...` lines), pass all of it."
    return Text(f"{beginning}{words}.", do, more=[_DOCTOR])


def _about_interrupt(one: Answer, error: Raised) -> Text:
    own = _own_frame(error)
    place = f"{_output.printable(own.path)}, line {own.number}" if own is not None and own.number else ""
    why = [f"The program was at {place}."] if place else []
    do = f"If the program hung: {_hang_watch(one.logs)}"
    return Text("The program was interrupted (KeyboardInterrupt), and its log shows no error.", do, why)


def _own_frame(error: Raised) -> Optional[frames.Frame]:
    """Return the last frame in the user's files."""
    own = [frame for frame in facts.own(error.frames) if not frames.is_lightning(frame)]
    return own[-1] if own else None


def _about_nothing(one: Answer) -> Text:
    log, status = one.logs[0], one.status
    if log.is_script and not one.matches:
        name = _output.printable(log.name)
        do = f"`lightning-patches diagnose -- python {shlex.quote(log.name)}` runs the script, and explains its error."
        return Text(f"{name} uses no name that Lightning 2.x has removed.", do)
    if log.is_words:
        do = "Pass the traceback or the log of the program, or describe the problem in other words."
        return Text("I know no bug that fits this description.", do)
    if status == 0:
        return Text("The program ended well.", f"If it {_IN_WORDS}")
    if status is not None and signal_name(status):
        name = signal_name(status)
        killer = f"Often the cause is the out-of-memory killer: look at `dmesg`. {hangs.MORE_MEMORY}"
        verdict = f"{name} ended the program, and its standard error has no error."
        return Text(verdict, killer if name == "SIGKILL" else _DOCTOR)
    if status is not None:
        verdict = f"The program ended with status {status}, and its standard error has no error."
        return Text(verdict, f"Read its output. {_DOCTOR}")
    if any(match.kind == "ruled out" for match in one.matches):
        return Text("The log shows no bug of this release.", _DOCTOR)
    do = f"Write errors to the log as well (`2>&1`), and pass it again. If the program ends well but {_IN_WORDS}"
    return Text("The log shows no error.", do)


def _about_match(one: Answer, match: Match) -> Text:
    record = match.record
    why = [record.impact.summary]
    if isinstance(record, Removed):
        why = ["It is still defined, but Lightning 2.x never calls it."] if record.is_silent else []
    has_line = match.symptom and match.error is not None or match.ground in ("line", "weak line", "script")
    if has_line:
        why.append(_place(one, match.log.name, match.line) + match.text)
    if match.kind == "possible" and would_tell(match):
        why.append(f"To be sure, {would_tell(match)}.")
    more = []
    if isinstance(record, Patch):
        fixed = records.fixed_in(record)
        show = f"`lightning-patches show {record.name}`"
        more.append(f"Affected: {records.affected(record)}. Fixed in: {fixed}. More: {show}.")
    return Text(f"{_verdict(one, match)}.", f"{advice(match)}.", list(filter(None, why)), more)


def _verdict(one: Answer, match: Match) -> str:
    """Return the verdict on a match without its full stop."""
    record, where = match.record, _where(match)
    name = record.name
    if isinstance(record, Removed):
        has_not = f"never call `{name}`" if record.is_silent else f"do not have `{name}`"
        releases = [verdict.version for verdict in match.verdicts if match.source in ("requirement", "log")]
        here = f"; this is {facts.in_words(releases)}" if releases else ""
        return f"Lightning {record.gone} and later {has_not}{here}"
    if match.ground == "words":
        names = [other.record.name for other in one.matches if other.ground == "words" and not other.ruled_out]
        about = f": {record.title}" if known.is_no_bug(record) else where
        return f"Perhaps {' or '.join(names)}{about if len(names) == 1 else ''}"
    if known.is_no_bug(record):
        certain = _OUTSIDE[record.group] if match.kind == "found" else f"Perhaps {name}"
        return f"{certain}: {record.title}"
    if match.ground == "consequence":
        certain = "Known bug" if match.kind == "found" else "Probably" if match.is_sure else "Perhaps"
        return f"{certain} {name}{where}: {match.why}"
    if match.kind == "found":
        return f"Known bug {name}{where}"
    if match.ground == "number":
        return f"{name}{where}"
    return f"{'Probably' if match.ground in ('frame', 'line') else 'Perhaps'} {name}{where}"


def _having(match: Match) -> str:
    """Return the relevant releases that have the bug, such as ``"lightning 2.5.1 or 2.5.2"``, or ""."""
    having = [one for one in match.verdicts if one.verdict not in gate.ELSEWHERE]
    if match.source == "installed" and (not having or len(having) < len(match.verdicts)):
        return ""
    having = having or list(match.verdicts)
    names = list(dict.fromkeys(one.distribution for one in having))
    versions = list(dict.fromkeys(one.version for one in having))
    return f"{' and '.join(names)} {facts.in_words(versions)}" if versions else ""


def _where(match: Match) -> str:
    """Return ``" of lightning 2.5.1"``, or the affected releases if the installed release does not have the bug, or
    ""."""
    if _having(match):
        return f" of {_having(match)}"
    ranges = records.affected(match.record) if isinstance(match.record, (Patch, Unpatched)) else ""
    return f", a bug of Lightning {ranges}" if ranges and match.source == "installed" else ""


def _place(one: Answer, file: str, line: int) -> str:
    return f"{_output.printable(file)}, line {line}: " if len(one.logs) > 1 and file else f"Line {line}: "


def _written_by(one: Answer) -> str:
    """Return a sentence with the Lightning that wrote the log, and with the installed one if it differs."""
    known = one.facts
    if not known.releases or one.required:
        return ""
    how = "its traceback fits no other release" if known.by == "frames" else "the log names it"
    written = f"Written by {known.distribution or 'lightning'} {facts.in_words(known.releases)} ({how})."
    here = [found for found in find_installed() if not known.distribution or found.distribution == known.distribution]
    others = [found for found in here if found.version not in known.releases]
    return f"{written} Installed here is {others[0].distribution} {others[0].version}." if others else written


def _other_matches(one: Answer) -> list[str]:
    main = one.main
    error = main.error if main is not None else None
    rest = [match for match in one.matches if match is not main]
    rest = [match for match in rest if error is None or match.error is not error or isinstance(match.record, Patch)]
    if main is not None and main.ground == "words":
        patches = [match.record for match in rest if isinstance(match.record, Patch) and not match.ruled_out]
        return [f"{patch.name}: {patch.impact.summary}" for patch in patches]
    if main is not None and main.ground == "script":
        return [f"Line {match.line}, {match.record.name}: {advice(match)}." for match in rest]
    names = {kind: dict.fromkeys(match.record.name for match in rest if match.kind == kind) for kind, _ in _OTHERS}
    return [f"{words}: {', '.join(names[kind])}." for kind, words in _OTHERS if names[kind]]


def _same_error(one: Answer) -> list[str]:
    """Return a sentence with bugs that end in the same error, but that are not among the matches."""
    shown = {match.record.name for match in one.matches}
    names = [name for log in one.logs for name in candidates.with_same_error(log) if name not in shown]
    which = f"{'Bugs' if len(names) > 1 else 'A bug'} with the same last line: {', '.join(dict.fromkeys(names))}"
    return [f"{which}. The whole traceback (the `File ...` lines) is needed to tell them apart."] if names else []


def _left_out(logs: Sequence[Log]) -> list[str]:
    found: dict[str, list[str]] = {}
    for log in logs:
        for sentence in log.left_out:
            found.setdefault(sentence, []).append(_output.printable(log.name))
    if len(logs) == 1:
        return list(found)
    return [f"{names[0] if len(names) == 1 else f'{len(names)} logs'}: {text}" for text, names in found.items()]


def _alert(release: Compromised) -> str:
    return f"Lightning {release.version} from PyPI was compromised and runs hostile code when it is imported"


def would_tell(match: Match) -> str:
    """Return the further evidence that would prove or rule out a possible bug, or ""."""
    record = match.record
    if known.is_no_bug(record) or match.ground == "number":
        return ""
    lacking = [one for one in match.verdicts if one.verdict in gate.ELSEWHERE]
    older = _older(match)
    if older:
        return f"check by hand: {older} was not checked for this bug, and has no patch for it"
    if match.error is None and isinstance(record, Patch) and record.impact.would_tell:
        return f"check {record.impact.would_tell}"
    if match.ground == "words":
        return f"compare with `lightning-patches show {record.name}`"
    if isinstance(record, Patch) and record.impact.would_tell:
        return f"check {record.impact.would_tell}"
    if not match.verdicts or (match.source == "installed" and lacking):
        return "name the Lightning release of the log, as in `--requirement lightning==2.2.5`"
    if lacking:
        having = [one.version for one in match.verdicts if one.verdict not in gate.ELSEWHERE]
        return f"run `pip show lightning` in its environment: only {facts.in_words(having)} has the bug"
    if match.error is None and not record.impact.error:
        return f"compare with `lightning-patches show {record.name}`"
    if match.error is not None and not match.error.frames:
        return "pass the whole traceback (the `File ...` lines)"
    return f"check if this happens: {record.impact.summary.rstrip('.')}"


def _older(match: Match) -> str:
    """Return the relevant release if it was not checked for the bug, or ""."""
    is_older = bool(match.verdicts) and all(one.verdict == "not-known" for one in match.verdicts)
    return match.verdicts[0].release if is_older else ""


def advice(match: Match) -> str:
    """Return the advice on a match, a sentence without its full stop."""
    record = match.record
    if match.ruled_out:
        where = ", ".join(one.release for one in match.verdicts)
        if isinstance(record, Removed):
            return f"{where} has it; from {record.gone} on: {record.instead}"
        return f"{where} does not have this bug, so the cause is another one, unless another release wrote the log"
    if isinstance(record, Removed):
        if record.instead.startswith("nothing: "):
            return f"Remove it: {record.instead[len('nothing: ') :]}"
        return f"Use instead: {record.instead}"
    if isinstance(record, Unpatched):
        if match.needed:
            return (
                f"If the file is your own: put {match.needed}. In your own torch.load calls, pass `weights_only=False`"
            )
        return record.do or f"{record.advice}: there is no patch ({record.why_not})"
    if _older(match):
        return f"Move to Lightning 2.x. {_older(match)} was not checked for this bug"
    begun = match.log.facts.start
    kinds = {one.verdict for one in match.verdicts}
    others = [WORKAROUNDS[record.name]] if record.name in WORKAROUNDS else []
    others += [f"upgrade to Lightning {record.fixed_in}"] if record.fixed_in else []
    leave = f", or {', or '.join(others)}" if others else "; no release has the fix yet"
    if kinds & set(gate.REFUSED):
        return f"`lightning-patches status {record.name}` shows why the patch is not applied here{leave}"
    if match.ground == "words":
        return f"`lightning-patches show {record.name}` shows its symptoms and what to do"
    if record.warns:
        return f"{_how('1', begun)}, which warns when this happens, but does not fix it{leave}"
    if not record.default and "pending" not in kinds and not match.is_patched:
        return f"{_how(f'default,{record.name}', begun)}{leave}"
    if "disabled" in kinds and record.default:
        return f"Select the patch again: LIGHTNING_PATCHES leaves it out{leave}"
    if match.needed and record.name == "own-checkpoint-load" and not match.is_patched:
        run = _how("1", begun)
        own = "this fixes the error if the same run wrote the checkpoint"
        return f"{run}; {own}. For other checkpoints, put {match.needed}{leave}"
    if match.needed:
        return f"Put {match.needed}{leave}"
    if match.is_patched:
        status = f"`lightning-patches status {record.name}`"
        return f"{status}, run in its environment, shows why the patch did not help although it was on{leave}"
    return f"{_how('1', begun)}{leave}"


def _how(spec: str, begun: Start) -> str:
    """Return the shortest way to enable the patches in the program."""
    variable = "" if spec == "1" else f"`LIGHTNING_PATCHES={spec}`"
    if autostart.is_enabled():
        return f"`LIGHTNING_PATCHES={spec}`"
    if begun.how == "notebook":
        env = f"`%env LIGHTNING_PATCHES={spec}` and " if variable else ""
        return f"Put {env}`import lightning_patches` into the first cell, above Lightning, and restart the kernel"
    if begun.how == "torchrun":
        file = f" of {begun.file}" if begun.file else " of the script"
        return f"Put `import lightning_patches` at the top{file}{', and set ' + variable if variable else ''}"
    if begun.program:
        option = f"--patches {shlex.quote(spec)} " if variable else ""
        return f"`lightning-patches run {option}{begun.program}`"
    if begun.how == "module":
        return f"Put `lightning-patches run{' --patches ' + spec if variable else ''}` instead of `python`"
    return f"Put {calls.AT_TOP}{', and set ' + variable if variable else ''}"


def to_paste(one: Answer) -> str:
    """Return a line for a thread about the same problem, or "". It contains no text of the log."""
    tool = f"lightning-patches {lightning_patches.__version__}"
    match = one.main
    if one.compromised is not None:
        return f"{_alert(one.compromised)}. See GHSA-w37p-236h-pfx3 ({tool})."
    if one.unknown is not None:
        return f"{tool} does not know the first error. The later errors are its consequences."
    if match is not None and (match.cause or match.ground == "number"):
        return _paste_match(match, tool)
    if one.out_of_sync:
        return f"The ranks train different models (found by the check of {tool})."
    if one.hangs:
        kind = re.split(r"[;:(]|, at |, and ", one.hangs[0].verdict)[0].strip()
        waits = _WAITS_IN_GROUP.search(one.hangs[0].verdict)
        if waits is not None:
            kind = waits.group() if waits.group().startswith(kind) else f"{kind}; {waits.group()}"
        return f"Report of the hang watch of {tool}: {_output.shown(kind)}."
    names = [match.record.name for match in one.matches if match.kind == "possible"]
    if names:
        return f"Perhaps {' or '.join(names[:3])} ({tool}: `lightning-patches show {names[0]}`)."
    if one.logs[0].is_words or not any(log.raised for log in one.logs):
        return ""
    return f"{tool} does not know this error."


def _paste_match(match: Match, tool: str) -> str:
    record = match.record
    numbers = record.upstream.issues or record.upstream.pull_requests
    page = "issues" if record.upstream.issues else "pull"
    where = f", {records.UPSTREAM}/{page}/{numbers[0]}" if numbers else ""
    if isinstance(record, Removed):
        return f"{record.title}{where} ({tool})."
    if known.is_no_bug(record):
        return f"{_OUTSIDE[record.group]}: {record.title}{where} ({tool})."
    fixed = f"fixed in {record.fixed_in}" if record.fixed_in else "not fixed in any release"
    patch = f"; {tool} has a patch for it, {record.name}" if isinstance(record, Patch) else ""
    error = record.impact.error or match.symptom or record.title
    return f"A known bug of {_having(match) or 'Lightning'}{where}, {fixed}{patch}: {error}"


def signal_name(status: int) -> str:
    """Return the name of the signal of a shell's exit status, or ""."""
    try:
        return signal.Signals(status - 128).name
    except ValueError:
        return ""
