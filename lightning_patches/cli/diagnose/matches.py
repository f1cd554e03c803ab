"""Check candidates against the relevant releases, and sort them by likelihood."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Optional

from lightning_patches.cli import _output, _toggle
from lightning_patches.cli.diagnose import frames, known, verdicts
from lightning_patches.cli.diagnose.candidates import Candidate
from lightning_patches.cli.diagnose.log import Log
from lightning_patches.cli.diagnose.tracebacks import Raised
from lightning_patches.cli.diagnose.verdicts import OnRelease
from lightning_patches.engine import gate
from lightning_patches.patch import Patch
from lightning_patches.patches.removed import Removed

Source = Literal["requirement", "log", "installed", ""]

_RAISED = re.compile(r"(?:\w{1,100}\.){0,12}GradientSyncError: ")
_SUSPECTS = ("fabric-submodule-sync", "fabric-step-methods", "ddp-static-graph-manual", "spawned-parameters")
"""Patches for bugs that make ranks train different models."""
_KINDS = ("found", "possible", "follows", "ruled out")
_GROUNDS = ("consequence", "script", "number", "frame", "line", "weak line", "words")


@dataclass(frozen=True, eq=False)
class Match(Candidate):
    """A candidate with the verdicts on the relevant releases.

    Args:
        verdicts: one verdict for each release.
        source: source of the releases: the command line, the log or the environment.
        cause: True for the main cause.
    """

    verdicts: Sequence[OnRelease] = ()
    source: Source = ""
    cause: bool = False

    @property
    def ruled_out(self) -> bool:
        """True if another line of the log excludes the bug, or no relevant release has it.

        Installed releases can't rule out a bug that the log proves.
        """
        if self.excluded:
            return True
        lacking = bool(self.verdicts) and all(one.verdict in verdicts.WITHOUT_THE_BUG for one in self.verdicts)
        return lacking and not (self.source == "installed" and self.certain_ground)

    @property
    def kind(self) -> str:
        """``"found"``, ``"possible"``, ``"follows"`` or ``"ruled out"``.

        A bug is found if its ground has no other explanation, and every relevant release has the bug.
        """
        if self.ruled_out:
            return "ruled out"
        if self.follows:
            return "follows"
        if known.is_no_bug(self.record) and self.certain_ground:
            return "found"
        has = [one.verdict not in gate.ELSEWHERE for one in self.verdicts]
        is_affected = bool(has) and (all(has) if self.source != "installed" else any(has))
        return "found" if self.certain_ground and is_affected else "possible"


def with_verdicts(one: Candidate, setting: _toggle.Toggle, required: Optional[Sequence[tuple[str, str]]]) -> Match:
    """Check a candidate against the releases on the command line, or else in the log, or else in the environment.

    Args:
        one: the candidate.
        setting: the toggle.
        required: the releases that the command line names; ``None`` if it names none.
    """
    assert setting.selection is not None
    facts = one.log.facts
    releases = [(facts.distribution or "lightning", version) for version in facts.releases]
    source: Source = "log" if releases else "installed"
    if required is not None:
        releases, source = list(required), "requirement"
    if source == "installed":
        namespaces = {facts.distribution.replace("-", "_")} if facts.distribution else set()
        found = verdicts.installed(one.record, namespaces, setting)
    else:
        found = [
            verdict
            for distribution, version in releases
            for verdict in verdicts.by_number(one.record, distribution, version, setting.selection)
        ]
    return Match(**vars(one), verdicts=found, source=source)


def ordered(found: Iterable[Match], logs: Sequence[Log]) -> list[Match]:
    """Return one match for each record, the cause first."""
    chains = [log.cause.chain for log in logs if log.cause is not None]
    every = list(found)
    possible = {match.record.name for match in every if not match.ruled_out}

    def rank(match: Match) -> tuple[object, ...]:
        is_behind = not possible.isdisjoint(getattr(match.record, "behind", ()))
        return is_behind, *_rank(match, chains)

    once = list({match.record.name: match for match in sorted(every, key=rank)[::-1]}.values())[::-1]
    once.sort(key=rank)
    first = next((match for match in once if match.kind in ("found", "possible") and not match.is_before), None)
    cause = first if first is not None and first.kind == "found" else None
    if first is None and once and once[0].kind == "follows" and unknown(once) is None:
        # Another process, such as a worker, may have printed the error that the last one hides.
        cause = next((match for match in once if match.kind == "found"), once[0])
        once.sort(key=lambda match: match is not cause)
    return [replace(match, cause=True) if match is cause else match for match in once]


def _rank(match: Match, chains: list[list[Raised]]) -> tuple[object, ...]:
    """Return the sort key of a match. Matches of the error that ended the program are first, those with the best ground
    before others."""
    chain = next((chain for chain in chains if match.error in chain), [])
    at = chain.index(match.error) if match.error is not None and match.error in chain else None
    is_ending = at is not None or not chains
    caused = chain[-1].is_caused if chain else False
    place = (len(chain) - 1 - at if caused else at) if at is not None else 99
    passing = frames.passing(known.places(match.record), match.error.frames) if match.error is not None else []
    last = len(match.error.frames) - 1 if match.error is not None else 0
    is_event, is_environment = match.record.group == "event", known.is_outside(match.record)
    kind = "possible" if is_event and match.kind == "found" else match.kind
    return (
        match.kind == "ruled out",
        not is_ending,
        match.kind == "follows",
        _KINDS.index(kind) if match.ground != "consequence" else 0,
        place,
        match.is_patched and not match.needed,
        not (is_environment and last in passing),
        _GROUNDS.index(match.ground),
        not match.is_sure,
        is_environment,
        known.records().index(match.record) if is_event else 0,
        isinstance(match.record, Removed) and match.record.kind == "module",
        isinstance(match.record, Patch) and not match.record.default and match.ground != "frame",
        passing[0] if passing else 0,
        match.line,
        isinstance(match.record, Patch) and match.record.warns,
        match.record.name if match.ground != "words" else "",
    )


def unknown(found: Sequence[Match]) -> Optional[Raised]:
    """Return the first error of the chain that ended the program, if all matches are bugs that hide an earlier
    error."""
    follows = [match.error for match in found if match.kind == "follows" and match.error is not None]
    if any(match.kind in ("found", "possible") and match.error is not None for match in found) or not follows:
        return None
    return follows[0].chain[0]


class OutOfSync(NamedTuple):
    """A GradientSyncError in a log.

    Args:
        file: name of the log.
        line: number of the line, from 1.
        text: that line.
        suspects: names of the known bugs that may have caused it; none if the program ran with patches.
    """

    file: str
    line: int
    text: str
    suspects: tuple[str, ...]


def out_of_sync(
    logs: Sequence[Log], setting: _toggle.Toggle, required: Optional[Sequence[tuple[str, str]]]
) -> list[OutOfSync]:
    """Return the first GradientSyncError of each log. See :func:`with_verdicts` for the arguments."""
    records = [record for record in known.records() if record.name in _SUSPECTS]
    found = []
    for log in logs:
        error = next((error for error in log.raised if _RAISED.match(error.words)), None)
        if error is not None:
            line, text = log.lines[error.message].number, _output.shown(error.words)
            suspects = [Candidate(record, "", line, text, "words", log, error) for record in records]
            names = [one.record.name for one in suspects if not with_verdicts(one, setting, required).ruled_out]
            found.append(OutOfSync(log.name, line, text, () if log.facts.is_patched else tuple(names)))
    return found
