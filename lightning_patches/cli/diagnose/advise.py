"""What to do next: about each match, and about the whole in one last line."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Optional

import lightning_patches
from lightning_patches.cli import _output, _records, autostart
from lightning_patches.cli.diagnose import calls, find, hangs, judge, start
from lightning_patches.cli.diagnose.find import SOME_PROGRAM, Log, Match
from lightning_patches.cli.diagnose.hangs import Hang
from lightning_patches.cli.diagnose.log import Raised
from lightning_patches.cli.diagnose.sync import OutOfSync
from lightning_patches.engine import gate
from lightning_patches.patch import Patch
from lightning_patches.removed import Removed
from lightning_patches.unpatched import Feature, Unpatched

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


@dataclass
class Answer:
    """All that is to be said.

    Args:
        logs: what was looked through.
        matches: the cause first.
        out_of_sync: what a check of the ranks' gradients has found.
        unknown: the first error, if that is no known bug and what was found followed from it.
        standing: the start at which the logs end.
        lead: what comes before everything else, "" for nothing.
        closing: the last line.
    """

    logs: list[Log]
    matches: list[Match]
    out_of_sync: list[OutOfSync]
    unknown: Optional[Raised]
    standing: Optional[start.Start]
    lead: str
    closing: str

    @property
    def hangs(self) -> list[Hang]:
        """Reports of the hang watch."""
        return [hang for one in self.logs for hang in one.hangs]

    @property
    def ok(self) -> bool:
        """Something was found."""
        return bool(self.hangs or self.out_of_sync) or any(not match.ruled_out for match in self.matches)


def answer(
    matches: list[Match], out_of_sync: list[OutOfSync], logs: list[Log], program: str, ended: Optional[int]
) -> Answer:
    """What to say.

    Args:
        matches: ordered and judged.
        out_of_sync: what a check of the ranks' gradients has found.
        logs: what was looked through.
        program: what is to be run again, as one types it.
        ended: the exit status of the program, where one was run.
    """
    reports = [hang for one in logs for hang in one.hangs]
    unknown = judge.unknown_cause(matches)
    is_open = not reports and not any(match.cause or match.error for match in matches)
    standing = start.standing([(one.name, one.text) for one in logs]) if is_open else None
    has_cause = unknown is not None or any(match.cause for match in matches)
    told = [*(one.do for one in out_of_sync), *(hang.do for hang in reports)]
    closing = _closing(matches, unknown) if has_cause or not told else told[0]
    if standing is not None and not any(match.kind == "possible" for match in matches):
        closing = f"If the program stood still there, {_FINDS_OUT.format(program)}"
    elif not matches and not told and not any(one.text.raised or one.text.has_traceback for one in logs):
        if ended is not None:
            closing = _on_end(ended, closing)
        else:
            closing = _UNKNOWN_WORDS if logs[0].in_words else closing + _WITHOUT_ERROR
    is_of_a_hang = any(one.in_words and find.is_of_a_hang(one.text) for one in logs)
    lead = f"If several ranks stand still, {_FINDS_OUT.format(SOME_PROGRAM)}" if is_of_a_hang else ""
    return Answer(logs, matches, out_of_sync, unknown, standing, lead, closing)


def to_paste(answer: Answer) -> str:
    """One line for a thread in which others ask the same; "" for words that nothing is known of."""
    cause = next((match for match in answer.matches if match.cause), None)
    said = f"lightning-patches {lightning_patches.__version__}"
    if answer.unknown is not None:
        return f"The first error is no known bug of Lightning, says {said}: {_output.shown(answer.unknown.words)}"
    if cause is not None:
        return _known(cause, said)
    if answer.out_of_sync:
        return f"The ranks train different models, says {said}: {answer.out_of_sync[0].text}"
    if answer.hangs:
        return f"The hang watch of {said}: {_output.shown(answer.hangs[0].verdict)}."
    names = [match.record.name for match in answer.matches if match.kind == "possible"]
    if names:
        return f"Perhaps {' or '.join(names[:3])}, says {said}; its `diagnose` tells what would tell."
    return "" if answer.logs[0].in_words else f"{said} finds no known bug of Lightning in it."


def _known(match: Match, said: str) -> str:
    record = match.record
    numbers = record.upstream.issues or record.upstream.pull_requests
    page = "issues" if record.upstream.issues else "pull"
    where = f", {_records.UPSTREAM}/{page}/{numbers[0]}" if numbers else ""
    releases = ", ".join(verdict.release for verdict in match.verdicts) or "Lightning"
    if isinstance(record, (Removed, Feature)):
        return f"No bug: {record.title}{where} ({said})."
    fixed = f"fixed in {record.fixed_in}" if record.fixed_in else "fixed in no release"
    patch = f"; {said} has a patch for it, {record.name}" if isinstance(record, Patch) else ""
    return f"A known bug of {releases}{where}, {fixed}{patch}: {match.text}"


def would_tell(match: Match) -> str:
    """What would make a possible bug a found one, or rule it out."""
    record = match.record
    if isinstance(record, Feature):
        return ""
    older = [verdict for verdict in match.verdicts if verdict.verdict == "not-known"]
    if older and len(older) == len(match.verdicts):
        which = older[0].release
        return f"nothing here: {which} is older than the releases that are known here, and no patch is for it"
    if match.error is None and isinstance(record, Patch) and record.impact.would_tell:
        return record.impact.would_tell
    if not match.symptom:
        return f"whether this is what happens there. `lightning-patches show {record.name}` tells more"
    if isinstance(record, Patch) and record.impact.would_tell:
        return record.impact.would_tell
    if not match.verdicts:
        return "which Lightning wrote this: add for instance --requirement lightning==2.2.5"
    if match.error is None and not record.impact.error:
        return f"whether it is what happens there, see `lightning-patches show {record.name}`"
    places = getattr(record, "frames", ()) or sorted(
        {location.partition(":")[0].replace(".", "/") + ".py" for location in getattr(record, "locations", ())}
    )
    if not places:
        return f"whether it is what happens there: {record.impact.summary}"
    return f"the error's traceback: if it is this bug, it runs through {' or '.join(place.strip() for place in places)}"


def advice(match: Match) -> str:
    record = match.record
    if match.ruled_out:
        where = ", ".join(verdict.release for verdict in match.verdicts)
        if isinstance(record, Removed):
            return f"{where} has it; from {record.gone} on: {record.instead}"
        return f"{where} does not have this bug: here the cause is another one, unless the log is of another release"
    if isinstance(record, Removed):
        return f"gone since {record.gone}; instead: {record.instead}"
    if isinstance(record, Feature):
        return f"no release does it, and that is no bug; without replacing anything: {record.way_round}"
    if match.kind == "possible":
        return f"what would tell: {would_tell(match)}"
    if isinstance(record, Unpatched):
        return f"there is no patch ({record.why_not}); move to {record.move_to}"
    kinds = {verdict.verdict for verdict in match.verdicts}
    leave = f"or move to Lightning {record.fixed_in}" if record.fixed_in else "no release has the fix yet"
    if kinds & set(gate.REFUSED):
        return f"the patch is not applied here, see `lightning-patches status {record.name}`; {leave}"
    if not record.default and "pending" not in kinds and not match.is_patched:
        return f"the patch is opt-in, {_how(f'default,{record.name}', match.program)} adds it; {leave}"
    if "disabled" in kinds and record.default:
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
    imported = calls.AT_TOP
    if spec == "1":
        return f"`lightning-patches run {program}` (or {imported})"
    return f"`lightning-patches run --patches {spec} {program}` (or `LIGHTNING_PATCHES={spec}` and {imported})"


def _closing(matches: list[Match], unknown: Optional[Raised]) -> str:
    """The last line: one cause, one piece of advice."""
    if unknown is not None:
        return f"The cause is the first error, which is no known bug of Lightning: {_output.shown(unknown.words)}"
    cause = next((match for match in matches if match.cause), None)
    if cause is not None:
        return f"{cause.record.name}: {advice(cause)}."
    if matches and isinstance(matches[0].record, Feature):
        return f"If that is what you are after: {matches[0].record.way_round}."
    weak = [match for match in matches if not match.symptom and match.kind == "possible"]
    if weak:
        show = any(isinstance(match.record, Patch) for match in weak)
        tells = ": `lightning-patches show NAME` tells what each is about, and what helps" if show else ""
        return f"These are weak matches, by your words alone{tells}. A log or a traceback tells more."
    if any(match.kind == "possible" for match in matches):
        return "Nothing is certain: see above what would tell. A patch is no remedy for a guess."
    if matches:
        return "No known bug of this release shows in it. `lightning-patches doctor` looks at the environment."
    return (
        "No known bug of Lightning shows in it. `lightning-patches doctor` looks at the environment, "
        "`lightning-patches list` has all bugs that are patched."
    )


def _on_end(status: int, closing: str) -> str:
    """What to do about a command that ended without an error on its standard error."""
    name = signal_name(status)
    if name:
        killer = (
            f" Often that is the out-of-memory killer, see `dmesg`. {hangs.MORE_MEMORY}" if name == "SIGKILL" else ""
        )
        return f"{name} ended it.{killer} {closing}"
    return f"{closing} There is no traceback on its standard error." if status else f"{closing} {_IN_WORDS}"


def signal_name(status: int) -> str:
    """Name of the signal that an exit status stands for, as shells have it, "" for none."""
    try:
        return signal.Signals(status - 128).name
    except ValueError:
        return ""
