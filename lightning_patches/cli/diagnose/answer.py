"""In: what is known of a log, judged. Out: one answer: the verdict with the releases, what to do, why, and more."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Optional

import lightning_patches
from lightning_patches.cli import _output, autostart
from lightning_patches.cli.diagnose import calls, candidates, facts, hangs, known, start
from lightning_patches.cli.diagnose.candidates import Log, Match
from lightning_patches.cli.diagnose.facts import Facts, Start
from lightning_patches.cli.diagnose.hangs import Hang
from lightning_patches.cli.diagnose.sync import OutOfSync
from lightning_patches.cli.diagnose.tracebacks import CELL, Raised
from lightning_patches.engine import distributions, gate
from lightning_patches.engine.installed import find_installed
from lightning_patches.known import lookup, records
from lightning_patches.known.coverage import Fix
from lightning_patches.known.lookup import OpenReport
from lightning_patches.known.removed import Removed
from lightning_patches.known.unpatched import ADVICE, WITH_PKG_RESOURCES, Unpatched
from lightning_patches.patch import Patch

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
"""What helps without a patch and without another Lightning."""

_WAITS_IN_GROUP = re.compile(
    r"\branks? \d[\d, to]{0,80}(?:and (?:\d{1,6}|others) )?in \w{1,60} \d{1,9} of group [^\s;]{1,64}"
)
_OUTSIDE = {
    "feature": "No release of Lightning has this",
    "environment": "The cause is outside of Lightning",
}
"""What is certain about a record that is no bug of Lightning."""

_SCRIPT = "SCRIPT"
"""Stands for a program that nothing names."""
_WATCHED = "`LIGHTNING_PATCHES_HANG_TIMEOUT=300 lightning-patches run {}`"
_IN_WORDS = (
    "If the program ends well but does something wrong, say what in words, such as "
    '`lightning-patches diagnose "epoch 0 is too short"`.'
)


@dataclass
class Answer:
    """All that is to be said.

    Args:
        logs: what was looked through.
        matches: the cause first.
        out_of_sync: what a check of the ranks' gradients has found.
        unknown: the first error, if that is no known bug and what was found followed from it.
        standing: the start at which the logs end.
        verdict: the first line.
        do: what to do.
        why: lines that explain it.
        more: what else there is to know.
        alert: a line about a compromised release, "" for none.
    """

    logs: list[Log]
    matches: list[Match]
    out_of_sync: list[OutOfSync] = field(default_factory=list)
    unknown: Optional[Raised] = None
    standing: Optional[start.StalledStart] = None
    verdict: str = ""
    do: str = ""
    why: list[str] = field(default_factory=list)
    more: list[str] = field(default_factory=list)
    alert: str = ""

    @property
    def hangs(self) -> list[Hang]:
        """Reports of the hang watch."""
        return [hang for one in self.logs for hang in one.hangs]

    @property
    def facts(self) -> Facts:
        found = [one.facts for one in self.logs]
        return next((one for one in found if one.releases), found[0] if found else Facts())

    @property
    def main(self) -> Optional[Match]:
        """What the verdict is about."""
        return next(
            (match for match in self.matches if match.cause or (match.kind == "possible" and not match.is_before)), None
        )

    @property
    def ok(self) -> bool:
        """Something was found."""
        return bool(self.hangs or self.out_of_sync or self.alert) or any(not match.ruled_out for match in self.matches)


def answer(
    matches: list[Match], out_of_sync: list[OutOfSync], logs: list[Log], ended: Optional[int], required: list[str]
) -> Answer:
    """What to say.

    Args:
        matches: ordered and judged.
        out_of_sync: what a check of the ranks' gradients has found.
        logs: what was looked through.
        ended: the exit status of the program, where one was run.
        required: the releases that the command line names.
    """
    one = Answer(logs, matches, out_of_sync)
    last = next((ended for ended in (candidates.ending(log.raised) for log in logs) if ended is not None), None)
    one.unknown = candidates.unknown(matches)
    is_open = not one.hangs and not any(match.cause or match.error for match in matches)
    if is_open:
        one.standing = start.standing([(log.name, log.lines) for log in logs])
    if one.standing is not None and any(match.kind in ("found", "possible") for match in matches):
        one.standing = None
    if one.hangs and not any(match.cause for match in matches):
        _of_hang(one, one.hangs[0])
    elif one.unknown is not None:
        _of_unknown(one, one.unknown, "I don't know the first error, and the others came of it", last)
    elif one.main is not None and (one.main.cause or not one.out_of_sync):
        _of_match(one, one.main)
    elif one.out_of_sync:
        one.verdict = "The ranks train different models (GradientSyncError)."
        one.do = one.out_of_sync[0].do
        one.why.append(_place(one, one.out_of_sync[0].file, one.out_of_sync[0].line) + one.out_of_sync[0].text)
    elif one.standing is not None:
        _of_start(one, one.standing)
    elif last is not None and last.type == "KeyboardInterrupt":
        _of_interrupt(one, last)
    elif last is not None and (last.words or last.frames):
        _of_unknown(one, last, "I don't know this error")
    else:
        _of_nothing(one, ended)
    if not one.hangs:
        _written(one, required)
    _others(one)
    _with_same_error(one)
    one.more += _left_out(logs)
    if any(log.is_words and candidates.is_of_a_hang(log.text) for log in logs):
        one.verdict = (
            f"{one.verdict} If several ranks stand still, the hang watch tells."
            if one.main is not None
            else ("A program that stands still.")
        )
        one.do = f"If several ranks stand still: {_finds_out(logs)}"
    _alert(one, required)
    return one


def _left_out(logs: list[Log]) -> list[str]:
    found: dict[str, list[str]] = {}
    for log in logs:
        for sentence in log.left_out:
            found.setdefault(sentence, []).append(_output.printable(log.name))
    if len(logs) == 1:
        return list(found)
    return [f"{names[0] if len(names) == 1 else f'{len(names)} logs'}: {said}" for said, names in found.items()]


def of_numbers(one: Answer, named: Iterable[object]) -> None:
    """What is known of a number of upstream's that no record has."""
    for found in named:
        if isinstance(found, (Fix, OpenReport)):
            said = lookup.in_words(found)
            one.verdict, one.do = f"#{found.numbers[0]}: {said['title']}", said["do"]
            one.why = [f"{said['verdict'][0].upper()}{said['verdict'][1:]}"]


def _alert(one: Answer, required: list[str]) -> None:
    """2.6.2 and 2.6.3 come before everything else, wherever they are."""
    log = next((log for log in one.logs if log.facts.compromised is not None), None)
    named = log.facts.compromised if log is not None else None
    asked = next((release for release in required if re.search(r" 2\.6\.[23]$", release)), "")
    here = next((found for found in find_installed() if found.forbidden), None)
    if log is not None and named is not None:
        release = next(version for _, version in facts.named_in(named.text) if version in distributions.FORBIDDEN)
        where = "" if log.is_words else f" (line {named.number} of the log)"
    elif asked:
        release, where = asked.rpartition(" ")[2], ""
    elif here is not None:
        release, where = str(here.version), " (it is installed here)"
    else:
        return
    one.alert = f"Lightning {release} from PyPI was compromised and runs hostile code when it is imported{where}."
    if one.verdict:
        one.more.insert(0, f"Besides: {one.verdict} {one.do}")
    one.verdict, one.do = one.alert, f"{ADVICE[0].upper()}{ADVICE[1:]}."


def _of_hang(one: Answer, hang: Hang) -> None:
    one.verdict = f"{_output.printable(hang.verdict)}."
    one.do = hang.do
    if hang.file:
        one.why.append(f"{_output.printable(hang.file)}: report {hang.count} of the hang watch.")
    for other in one.hangs[1:]:
        one.more.append(f"{_output.printable(other.file)}: {_output.printable(other.verdict)}. {other.do}")


def _of_start(one: Answer, begun: start.StalledStart) -> None:
    one.verdict = f"Perhaps the program stands still at its start. {begun.words}"
    if begun.is_twice:
        one.verdict = begun.words
        one.do = (
            "Start as many tasks as `devices` says: `srun --ntasks-per-node=N` (`#SBATCH --ntasks-per-node=N`) with "
            "Trainer(devices=N); or a single task, without srun."
        )
    else:
        one.do = f"If it stood still there: {_finds_out(one.logs)}"
    one.why.append(_place(one, begun.file, begun.line) + _output.shown(begun.text))


def _finds_out(logs: list[Log]) -> str:
    program = next((log.facts.start.program for log in logs if log.facts.start.program), _SCRIPT)
    return (
        f"{_WATCHED.format(program)} tells after 300 seconds which rank is missing, and where it is. "
        "`lightning-patches doctor`, run where it starts, looks at launcher variables and ports."
    )


def _of_unknown(one: Answer, error: Raised, said: str, later: Optional[Raised] = None) -> None:
    words = f": `{_output.shown(error.words)}`" if error.words else ", whose message is not there"
    one.verdict = f"{said}{words}."
    own = _own_frame(error) or (_own_frame(later) if later is not None else None)
    if own is not None:
        path = "a cell of the notebook" if own[0] == CELL else _output.printable(own[0])
        one.do = f"Look at {path}, line {own[1]}, the last of your own lines in it." if own[1] else f"Look at {path}."
    elif error.frames:
        one.do = "Look at the line of your program that begins it; none of its own lines is in this excerpt."
    else:
        one.do = "If you have the whole traceback (the `File ...` lines), pass all of it."
    if not error.words:
        one.do = "Pass the lines below it as well: the last line of a traceback says what happened."
    one.more.append("`lightning-patches doctor` looks at the environment.")


def _of_interrupt(one: Answer, error: Raised) -> None:
    one.verdict = "It was interrupted (KeyboardInterrupt), and shows no error."
    one.do = f"If it stood still: {_finds_out(one.logs)}"
    own = _own_frame(error)
    if own is not None and own[1]:
        one.why.append(f"It was at {_output.printable(own[0])}, line {own[1]}.")


def _own_frame(error: Raised) -> Optional[tuple[str, int]]:
    """The last frame in a file that is not installed."""
    own = [frame for frame in facts.own(error.frames) if not candidates.is_lightning(frame)]
    return (own[-1].path, own[-1].number) if own else None


def _of_nothing(one: Answer, ended: Optional[int]) -> None:
    log = one.logs[0]
    if log.is_script and not one.matches:
        one.verdict = f"{_output.printable(log.name)} uses nothing that Lightning 2.x has removed."
        one.do = f"`lightning-patches diagnose -- python {shlex.quote(log.name)}` runs it, and explains how it ends."
        return
    if log.is_words:
        one.verdict = "I know no bug that is described like that."
        one.do = "Pass the traceback or the log of the program; or say it in other words."
        return
    one.verdict = "I see no error in it."
    one.do = f"Have the errors written to it as well (`2>&1`), and pass it again. {_IN_WORDS}"
    if any(match.kind == "ruled out" for match in one.matches):
        one.verdict = "No bug of this release shows in it."
        one.do = "`lightning-patches doctor` looks at the environment."
    if ended is not None:
        name = signal_name(ended)
        if name:
            killer = f"Often that is the out-of-memory killer: look at `dmesg`. {hangs.MORE_MEMORY}"
            one.verdict = f"{name} ended it, and there is no error on its standard error."
            one.do = killer if name == "SIGKILL" else "`lightning-patches doctor` looks at the environment."
        elif ended:
            one.verdict = f"It ended with status {ended}, and there is no error on its standard error."
            one.do = "Look at what it has printed; `lightning-patches doctor` looks at the environment."
        else:
            one.verdict = "It ended well."
            one.do = _IN_WORDS.replace("If the program ends well but does", "If it does")


def _of_match(one: Answer, match: Match) -> None:
    record = match.record
    name, where = record.name, _where(match)
    what = f"{record.impact.summary}"
    if isinstance(record, Removed):
        one.verdict = f"Lightning {record.gone} and later {_has_not(record)}{_here(match)}."
        what = "It is defined, and Lightning 2.x never calls it." if record.is_silent else ""
    elif match.ground == "words":
        possible = [other for other in one.matches if other.ground == "words" and not other.ruled_out]
        names = [other.record.name for other in possible]
        about = f": {record.title}" if known.is_no_bug(record) else where
        one.verdict = f"Perhaps {' or '.join(names)}{about if len(names) == 1 else ''}."
    elif known.is_no_bug(record):
        certain = _OUTSIDE[record.group] if match.kind == "found" else f"Perhaps {name}"
        one.verdict = f"{certain}: {record.title}."
    elif match.ground == "consequence":
        certain = "Known bug" if match.kind == "found" else "Probably" if match.is_sure else "Perhaps"
        one.verdict = f"{certain} {name}{where}: {match.why}."
    elif match.kind == "found":
        one.verdict = f"Known bug {name}{where}."
    elif match.ground == "number":
        one.verdict = f"{name}{where}."
    else:
        one.verdict = f"{'Probably' if match.ground in ('frame', 'line') else 'Perhaps'} {name}{where}."
    one.do = f"{advice(match)}."
    if what:
        one.why.append(what)
    if match.symptom and match.error is not None or match.ground in ("line", "weak line", "script"):
        one.why.append(_place(one, match.file, match.line) + match.text)
    if match.kind == "possible" and would_tell(match):
        one.why.append(f"To be sure: {would_tell(match)}.")
    if isinstance(record, Patch):
        fixed = records.fixed_in(record)
        one.more.append(
            f"Affected: {records.affected(record)}. Fixed in: {fixed}. More: `lightning-patches show {name}`."
        )


def _has_not(record: Removed) -> str:
    return f"never call `{record.name}`" if record.is_silent else f"do not have `{record.name}`"


def _here(match: Match) -> str:
    releases = [one.version for one in match.verdicts if match.source in ("requirement", "log")]
    return f"; this is {facts.in_words(releases)}" if releases else ""


def _is_everywhere(match: Match) -> bool:
    return bool(match.verdicts) and all(one.verdict not in gate.ELSEWHERE for one in match.verdicts)


def _where(match: Match) -> str:
    """``" of lightning 2.5.1 or 2.5.2"``: those releases in question that have the bug."""
    having = [one for one in match.verdicts if one.verdict not in gate.ELSEWHERE] or match.verdicts
    if match.source == "installed" and not _is_everywhere(match):
        ranges = records.affected(match.record) if isinstance(match.record, (Patch, Unpatched)) else ""
        return f", a bug of Lightning {ranges}" if ranges else ""
    names = list(dict.fromkeys(one.distribution for one in having))
    versions = list(dict.fromkeys(one.version for one in having))
    return f" of {' and '.join(names)} {facts.in_words(versions)}" if versions else ""


def _place(one: Answer, file: str, line: int) -> str:
    return f"{_output.printable(file)}, line {line}: " if len(one.logs) > 1 and file else f"Line {line}: "


def _written(one: Answer, required: list[str]) -> None:
    """Which Lightning wrote it, and whether that is the one that is installed."""
    known = one.facts
    if not known.releases or required:
        return
    how = "its frames fit no other release" if known.by == "frames" else "it says so"
    written = f"{known.distribution or 'lightning'} {facts.in_words(known.releases)}"
    here = [found for found in find_installed() if not known.distribution or found.distribution == known.distribution]
    line = f"Written by {written} ({how})."
    others = [found for found in here if found.version not in known.releases]
    if others:
        line += f" Installed here is {others[0].distribution} {others[0].version}."
    one.more.insert(0, line)


def _others(one: Answer) -> None:
    main = one.main
    same = main.error if main is not None else None
    rest = [match for match in one.matches if match is not main]
    rest = [match for match in rest if match.error is not same or same is None or isinstance(match.record, Patch)]
    if main is not None and main.ground == "words":
        for match in rest:
            if isinstance(match.record, Patch) and not match.ruled_out:
                one.more.append(f"{match.record.name}: {match.record.impact.summary}")
        one.more = list(dict.fromkeys(one.more))
        return
    if main is not None and main.ground == "script":
        for match in rest:
            one.more.append(f"Line {match.line}, {match.record.name}: {advice(match)}.")
        return
    for kind, words in (
        ("follows", "It hid the error that came before it"),
        ("found", "Also in it"),
        ("possible", "Perhaps also in it"),
        ("ruled out", "Not this, which the release does not have"),
    ):
        names = [match.record.name for match in rest if match.kind == kind]
        if names:
            one.more.append(f"{words}: {', '.join(dict.fromkeys(names))}.")


def _with_same_error(one: Answer) -> None:
    """Bugs that a line without a traceback does not make possible, although they end in this error."""
    shown = {match.record.name for match in one.matches}
    names = [name for log in one.logs for name in candidates.with_same_error(log) if name not in shown]
    if names:
        which = f"{'Bugs' if len(names) > 1 else 'A bug'} with the same last line: {', '.join(dict.fromkeys(names))}"
        one.more.append(f"{which}. Only the whole traceback (the `File ...` lines) can tell.")


def would_tell(match: Match) -> str:
    """What would make a possible bug a found one, or rule it out."""
    record = match.record
    if known.is_no_bug(record) or match.ground == "number":
        return ""
    lacking = [one for one in match.verdicts if one.verdict in gate.ELSEWHERE]
    older = [one for one in lacking if one.verdict == "not-known"]
    if older and len(older) == len(match.verdicts):
        which = older[0].release
        return f"nothing here: {which} is older than the releases that are known here, and no patch is for it"
    if match.error is None and isinstance(record, Patch) and record.impact.would_tell:
        return record.impact.would_tell
    if match.ground == "words":
        return f"whether this is what happens there. `lightning-patches show {record.name}` tells more"
    if isinstance(record, Patch) and record.impact.would_tell:
        return record.impact.would_tell
    if not match.verdicts or (match.source == "installed" and lacking):
        return "name the Lightning that wrote it, as in `--requirement lightning==2.2.5`"
    if lacking:
        having = [one.version for one in match.verdicts if one.verdict not in gate.ELSEWHERE]
        return (
            f"`pip show lightning` where it ran: {facts.in_words(having)} has the bug, and the others that fit do not"
        )
    if match.error is None and not record.impact.error:
        return f"whether it is what happens there, see `lightning-patches show {record.name}`"
    if match.error is not None and not match.error.frames:
        return "the whole traceback (the `File ...` lines)"
    return f"whether it is what happens there: {record.impact.summary.rstrip('.')}"


def advice(match: Match) -> str:
    """What to do about it, a sentence without its full stop."""
    record = match.record
    if match.ruled_out:
        where = ", ".join(one.release for one in match.verdicts)
        if isinstance(record, Removed):
            return f"{where} has it; from {record.gone} on: {record.instead}"
        return f"{where} does not have this bug: here the cause is another one, unless the log is of another release"
    if isinstance(record, Removed):
        if record.instead.startswith("nothing: "):
            return f"Take it out: {record.instead[len('nothing: ') :]}"
        return f"Use in its place: {record.instead}"
    if isinstance(record, Unpatched):
        if match.needed:
            return f"If the file is your own: put {match.needed}; in a torch.load of your own, `weights_only=False`"
        return record.do or f"{record.advice}: there is no patch ({record.why_not})"
    older = [one for one in match.verdicts if one.verdict == "not-known"]
    if older and len(older) == len(match.verdicts):
        return f"Move to Lightning 2.x: {older[0].release} is older than the releases that are known here"
    begun = match.facts.start
    kinds = {one.verdict for one in match.verdicts}
    others = [WORKAROUNDS[record.name]] if record.name in WORKAROUNDS else []
    others += [f"upgrade to Lightning {record.fixed_in}"] if record.fixed_in else []
    leave = f", or {', or '.join(others)}" if others else "; no release has the fix yet"
    if kinds & set(gate.REFUSED):
        return f"`lightning-patches status {record.name}` says why the patch is not applied here{leave}"
    if match.ground == "words":
        return f"`lightning-patches show {record.name}` tells whether that is it, and what helps"
    if record.warns:
        return f"{_how('1', begun)}, which says when this happens, and mends nothing{leave}"
    if not record.default and "pending" not in kinds and not match.is_patched:
        return f"{_how(f'default,{record.name}', begun)}{leave}"
    if "disabled" in kinds and record.default:
        return f"Select the patch again, which LIGHTNING_PATCHES leaves out{leave}"
    if match.needed and record.name == "own-checkpoint-load" and not match.is_patched:
        run = _how("1", begun)
        return f"{run}; that mends it if the run itself wrote the checkpoint. For any other put {match.needed}{leave}"
    if match.needed:
        return f"Put {match.needed}{leave}"
    if match.is_patched:
        status = f"`lightning-patches status {record.name}`"
        return f"{status} there says why the patch, which was on, did not help{leave}"
    return f"{_how('1', begun)}{leave}"


def _how(spec: str, begun: Start) -> str:
    """The shortest way to turn the patches on, for the way in which the program was started."""
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
        return f"Put `lightning-patches run{' --patches ' + spec if variable else ''}` in the place of `python`"
    return f"Put {calls.AT_TOP}{', and set ' + variable if variable else ''}"


def to_paste(one: Answer) -> str:
    """One line for a thread in which others ask the same: our words, and nothing of the log; "" for nothing."""
    said = f"lightning-patches {lightning_patches.__version__}"
    match = one.main
    if one.alert:
        return f"{re.sub(r' [(].*?[)]', '', one.alert)} See GHSA-w37p-236h-pfx3 ({said})."
    if one.unknown is not None:
        return f"{said} does not know the first error; those that came of it hide it."
    if match is not None and (match.cause or match.ground == "number"):
        return _known(match, said)
    if one.out_of_sync:
        return f"The ranks train different models, says the check of {said}."
    if one.hangs:
        kind = re.split(r"[;:(]|, at |, and ", one.hangs[0].verdict)[0].strip()
        waits = _WAITS_IN_GROUP.search(one.hangs[0].verdict)
        if waits is not None:
            kind = waits.group() if waits.group().startswith(kind) else f"{kind}; {waits.group()}"
        return f"The hang watch of {said}: {_output.shown(kind)}."
    names = [match.record.name for match in one.matches if match.kind == "possible"]
    if names:
        return f"Perhaps {' or '.join(names[:3])}, says {said}: `lightning-patches show {names[0]}`."
    if one.logs[0].is_words or not any(log.raised for log in one.logs):
        return ""
    return f"{said} does not know this error."


def _known(match: Match, said: str) -> str:
    record = match.record
    numbers = record.upstream.issues or record.upstream.pull_requests
    page = "issues" if record.upstream.issues else "pull"
    where = f", {records.UPSTREAM}/{page}/{numbers[0]}" if numbers else ""
    if isinstance(record, Removed):
        return f"{record.title}{where} ({said})."
    if known.is_no_bug(record):
        return f"{_OUTSIDE[record.group]}: {record.title}{where} ({said})."
    fixed = f"fixed in {record.fixed_in}" if record.fixed_in else "fixed in no release"
    patch = f"; {said} has a patch for it, {record.name}" if isinstance(record, Patch) else ""
    releases = _where(match)[4:] if _where(match).startswith(" of ") else "Lightning"
    return f"A known bug of {releases}{where}, {fixed}{patch}: {record.impact.error or match.symptom or record.title}"


def signal_name(status: int) -> str:
    """Name of the signal that an exit status stands for, as shells have it, "" for none."""
    try:
        return signal.Signals(status - 128).name
    except ValueError:
        return ""
