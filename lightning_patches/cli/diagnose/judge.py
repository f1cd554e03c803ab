"""What a match means: the verdict on its bug in the releases in question, and which match is the cause."""

from __future__ import annotations

from typing import Optional, Union

from lightning_patches.cli import _settings, audit
from lightning_patches.cli.diagnose import find
from lightning_patches.cli.diagnose.find import Log, Match, OnRelease, Record
from lightning_patches.cli.diagnose.log import Raised, Text
from lightning_patches.engine import gate
from lightning_patches.engine.installed import find_installed
from lightning_patches.patch import Patch
from lightning_patches.removed import Removed
from lightning_patches.unpatched import Feature, Unpatched

_KINDS = ("found", "possible", "follows", "ruled out")


def judge(matches: list[Match], logs: list[Log], setting: _settings.Toggle, requirement: Optional[str]) -> None:
    """Give each match its verdicts: on what is installed, or on ``requirement``."""
    if requirement is not None:
        assert setting.selection is not None
        releases = audit.audit_requirements([requirement], [], setting.selection)
        for match in matches:
            match.verdicts = _verdicts_by_number(match.record, [one for one in releases if one.known])
        return
    for one in logs:
        _judge_installed([match for match in matches if match.file == one.name], one.text, setting)


def _judge_installed(matches: list[Match], text: Text, setting: _settings.Toggle) -> None:
    if not matches:
        return
    used = {name for name, path in find.NAMESPACE_PATHS.items() if any(path.search(file) for file in text.files)}
    entries = [entry for entry in _settings.verdicts(setting) if not used or entry.namespace in used]
    installed = [one for one in find_installed() if not used or one.namespace in used]
    for match in matches:
        if isinstance(match.record, Patch):
            match.verdicts = [
                OnRelease(entry.distribution, entry.version, entry.verdict, entry.reason, entry.in_short)
                for entry in entries
                if entry.patch == match.record.name
            ]
        else:
            match.verdicts = _verdicts_by_number(
                match.record, [audit.Audited(one.distribution, one.version) for one in installed]
            )


def _verdicts_by_number(record: Record, releases: list[audit.Audited]) -> list[OnRelease]:
    """Nothing has a verdict that is no bug."""
    return [] if isinstance(record, Feature) else [_verdict_by_number(record, one) for one in releases if one.version]


def _verdict_by_number(record: Union[Patch, Unpatched, Removed], one: audit.Audited) -> OnRelease:
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
    return OnRelease(one.distribution, one.version, verdict, reason, "" if verdict == "pending" else reason)


def ordered(matches: list[Match]) -> list[Match]:
    """One match for each bug, the cause first: what is found before what is possible, the first error before others."""
    order = sorted(matches, key=lambda match: (_KINDS.index(match.kind), match.line if match.error else 0))
    once = list({match.record.name: match for match in reversed(order)}.values())
    once.sort(key=order.index)
    # Several bugs may say the same in one error: the one meant is that whose code the traceback comes to first. A patch
    # that was on, and needs nothing more, has not mended it.
    found = [match for match in once if match.kind == "found"]
    if found:
        first = [match for match in found if match.error is found[0].error]
        best = min(first, key=lambda match: (match.is_patched and not match.needed, _outermost(match)))
        best.cause = True
        for match in first:
            match.certain = match.cause
        once.sort(key=lambda match: not match.cause)
    elif once and once[0].kind == "follows" and unknown_cause(once) is None:
        once[0].cause = True
    return once


def _outermost(match: Match) -> int:
    frames = find.own_frames(match.record, match.error) if match.error is not None else []
    return frames[0] if frames else 0


def unknown_cause(matches: list[Match]) -> Optional[Raised]:
    """The first error of the log, if that is no known bug, and what was found followed from it."""
    if any(match.kind in ("found", "possible") and match.error is not None for match in matches):
        return None
    return next((m.error.root for m in matches if m.kind == "follows" and m.error is not None), None)
