"""The sentences about a match: the verdict, and the evidence that would prove or rule it out."""

from __future__ import annotations

from collections.abc import Sequence

from lightning_patches.cli.diagnose import advice, calls, facts, hints, known
from lightning_patches.cli.diagnose.answer import Answer, Text
from lightning_patches.cli.diagnose.matches import Match
from lightning_patches.engine import gate
from lightning_patches.known import frequent, records
from lightning_patches.known.unpatched import Unpatched
from lightning_patches.patch import Patch
from lightning_patches.patches.removed import Removed


def write(one: Answer, match: Match) -> Text:
    """Return the sentences about the main match."""
    record = match.record
    why = [record.impact.summary]
    if isinstance(record, Removed):
        why = ["It is still defined, but Lightning 2.x never calls it."] if record.is_silent else []
    has_line = match.symptom and match.error is not None or match.ground in ("line", "weak line", "script")
    if has_line:
        why.append(one.place(match.log.name, match.line) + match.text)
    show = f"`lightning-patches show {record.name}`"
    do = f"{advice.write(match)}."
    if match.kind == "possible" and would_tell(match) and not (show in do and show in would_tell(match)):
        why.append(f"To be sure, {would_tell(match)}.")
    more = []
    if isinstance(record, Patch):
        facts_ = [f"Affected: {records.affected(record)}.", _fixed_in(record), "" if show in do else f"More: {show}."]
        more.append(" ".join(filter(None, facts_)))
    is_open = match.kind == "possible" and match.ground in ("line", "weak line")
    is_open = is_open or (match.ground == "frame" and known.is_weak(match.symptom))
    is_open = is_open and record.name not in calls.TRUSTED  # the message's advice is less safe than ours
    own_advice = hints.in_message(match.message) if isinstance(record, Patch) and is_open else ""
    if own_advice:
        do = hints.first(own_advice, do)
    return Text(f"{_verdict(match, one.matches)}.", do, list(filter(None, why)), more)


def _fixed_in(patch: Patch) -> str:
    if patch.fixed_in or patch.upstream.merged or patch.warns:
        return f"Fixed in: {records.fixed_in(patch)}."
    return f"No release has the fix; the {'default' if patch.default else 'opt-in'} patch {patch.name} has it."


def _verdict(match: Match, matches: Sequence[Match]) -> str:
    """Return the verdict on the main match without its full stop."""
    record, where = match.record, _where(match)
    name = record.name
    if isinstance(record, Removed):
        return _of_removed(match, record)
    if match.ground == "words":
        names = [other.record.name for other in matches if other.ground == "words" and not other.ruled_out]
        about = f": {record.title}" if known.is_no_bug(record) else where
        return f"Perhaps {' or '.join(names)}{about if len(names) == 1 else ''}"
    if isinstance(record, Unpatched) and not record.is_bug:
        return frequent.verdict(record) if match.kind == "found" else f"Perhaps {name}: {record.title}"
    if match.ground == "consequence":
        certain = "Known bug" if match.kind == "found" else "Probably" if match.is_sure else "Perhaps"
        return f"{certain} {name}{where}: {match.why}"
    if match.kind == "found":
        return f"Known bug {name}{where}"
    certain = {"number": "", "frame": "Probably ", "line": "Probably "}.get(match.ground, "Perhaps ")
    return f"{certain}{name}{where}"


def _of_removed(match: Match, record: Removed) -> str:
    has_not = f"never call `{record.name}`" if record.is_silent else f"do not have `{record.name}`"
    releases = [verdict.version for verdict in match.verdicts if match.source in ("requirement", "log")]
    here = f"; this is {facts.in_words(releases)}" if releases else ""
    return f"Lightning {record.gone} and later {has_not}{here}"


def having(match: Match) -> str:
    """Return the relevant releases that have the bug, such as ``"lightning 2.5.1 or 2.5.2"``, or ""."""
    found = [one for one in match.verdicts if one.verdict not in gate.ELSEWHERE]
    if match.source == "installed" and (not found or len(found) < len(match.verdicts)):
        return ""
    found = found or list(match.verdicts)
    names = list(dict.fromkeys(one.distribution for one in found))
    versions = list(dict.fromkeys(one.version for one in found))
    return f"{' and '.join(names)} {facts.in_words(versions)}" if versions else ""


def _where(match: Match) -> str:
    """Return ``" of lightning 2.5.1"``, or the affected releases if the installed release does not have the bug, or
    ""."""
    if having(match):
        return f" of {having(match)}"
    ranges = records.affected(match.record) if isinstance(match.record, (Patch, Unpatched)) else ""
    return f", a bug of Lightning {ranges}" if ranges and match.source == "installed" else ""


def would_tell(match: Match) -> str:
    """Return the further evidence that would prove or rule out a possible bug, or ""."""
    record = match.record
    if match.ground == "number":
        return ""
    if known.is_no_bug(record):
        return f"check {record.impact.would_tell}" if record.impact.would_tell else ""
    older = advice.older(match)
    if older:
        return f"check by hand: {older} was not checked for this bug, and has no patch for it"
    if record.impact.would_tell:
        return f"check {record.impact.would_tell}"
    if match.ground == "words":
        return f"compare with `lightning-patches show {record.name}`"
    lacking = [one for one in match.verdicts if one.verdict in gate.ELSEWHERE]
    if not match.verdicts or (match.source == "installed" and lacking):
        return "name the Lightning release of the log, as in `--requirement lightning==2.2.5`"
    if lacking:
        versions = [one.version for one in match.verdicts if one.verdict not in gate.ELSEWHERE]
        return f"run `pip show lightning` in its environment: only {facts.in_words(versions)} has the bug"
    if match.error is None and not record.impact.error:
        return f"compare with `lightning-patches show {record.name}`"
    if match.error is not None and not match.error.frames:
        return "pass the whole traceback (the `File ...` lines)"
    return f"check if this happens: {record.impact.summary.rstrip('.')}"
