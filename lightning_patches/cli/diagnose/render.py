"""The answer as text and as JSON."""

from __future__ import annotations

from typing import Any

from lightning_patches.cli import _output, _records, _settings
from lightning_patches.cli.diagnose import advise, start
from lightning_patches.cli.diagnose.advise import Answer
from lightning_patches.cli.diagnose.find import Match, OnRelease
from lightning_patches.cli.diagnose.hangs import Hang
from lightning_patches.cli.diagnose.sync import OutOfSync
from lightning_patches.patch import Patch
from lightning_patches.removed import Removed


def write(answer: Answer) -> None:
    several = len(answer.logs) > 1
    if answer.lead:
        _output.write(_output.styled(_output.paragraph(answer.lead), "bold"))
        _output.write()
    _write_hangs(answer.hangs)
    if answer.standing is not None:
        _write_start(answer.standing, several)
    for one in answer.out_of_sync:
        _write_out_of_sync(one, several)
    if answer.matches or not (answer.hangs or answer.out_of_sync):
        _write(answer, several)
    paste = advise.to_paste(answer)
    if paste:
        _output.write(f"to paste: {paste}")


def write_end(program: str, status: int) -> None:
    by = f" ({advise.signal_name(status)})" if advise.signal_name(status) else ""
    _output.write(f"{program} ended with status {status}{by}.")


def as_dict(answer: Answer) -> dict[str, Any]:
    names = [one.name for one in answer.logs]
    return {
        "file": names[0],
        "files": names,
        "matches": [_as_dict(match) for match in answer.matches],
        "error": answer.unknown.words if answer.unknown is not None else None,
        "hangs": [hang.as_dict() for hang in answer.hangs],
        "out_of_sync": [
            {"file": one.file, "line": one.line, "text": one.text, "do": one.do} for one in answer.out_of_sync
        ],
        "start": answer.standing.as_dict() if answer.standing is not None else None,
        "to_paste": advise.to_paste(answer),
        "closing": f"{answer.lead} {answer.closing}".strip(),
        "ok": answer.ok,
    }


def _write(answer: Answer, several: bool) -> None:
    matches, unknown = answer.matches, answer.unknown
    has_cause = any(match.cause for match in matches)
    briefly = []
    for match in matches:
        is_removed = isinstance(match.record, Removed) and match.error is None
        if match.cause or is_removed or (not has_cause and unknown is None and match.kind != "ruled out"):
            _write_match(match, several)
            _output.write()
        else:
            briefly.append(match)
    for kind, words in (
        ("follows", "Followed from the first error"),
        ("found", "Also found"),
        ("possible", "Also possible, and no reason to act yet"),
        ("ruled out", "Not this one, which the release does not have"),
    ):
        names = [match.record.name for match in briefly if match.kind == kind]
        if names:
            _output.write(_output.paragraph(f"{words}: {', '.join(names)}."))
    if briefly:
        _output.write()
    _output.write(_output.styled(_output.paragraph(answer.closing), "bold"))


def _write_match(match: Match, several: bool) -> None:
    record = match.record
    kind = "found" if match.kind == "follows" else match.kind
    heading = _output.paragraph(f"{kind}: {record.name} ({record.group})")
    _output.write(_output.styled(heading, {"found": "bold red", "possible": "bold yellow"}.get(kind, "dim")))
    place = _place(match.file, match.line, several)
    if match.symptom:
        _output.write(_output.paragraph(f"{place}: {match.text}", "  "))
    _output.write(_output.paragraph(f"what: {record.impact.summary}", "  "))
    if isinstance(record, Patch):
        fixed = _records.fixed_in(record)
        _output.write(_output.paragraph(f"releases: {_records.affected(record)}; fixed in: {fixed}", "  "))
    for verdict in match.verdicts:
        words = _settings.in_words(verdict.verdict, verdict.in_short)
        _output.write(_output.paragraph(f"here: {verdict.release}: {words}", "  "))
    if not match.cause:
        _output.write(_output.paragraph(f"{advise.advice(match)}.", "  "))
    if isinstance(record, Patch) and match.symptom:
        _output.write(_output.paragraph(f"more: `lightning-patches show {record.name}`", "  "))


def _write_hangs(hangs: list[Hang]) -> None:
    for hang in hangs:
        _output.write(_output.paragraph(_output.printable(f"{hang.file}: {hang.verdict}.")))
        _output.write(_output.paragraph(f"do:  {hang.do}", "  "))
        _output.write()


def _write_out_of_sync(one: OutOfSync, several: bool) -> None:
    _output.write(_output.styled("found: the ranks train different models (GradientSyncError)", "bold red"))
    _output.write(_output.paragraph(f"{_place(one.file, one.line, several)}: {one.text}", "  "))
    _output.write(_output.paragraph(f"do:  {one.do}", "  "))
    _output.write()


def _place(file: str, line: int, several: bool) -> str:
    return f"{_output.printable(file)}, line {line}" if several else f"line {line}"


def _write_start(begun: start.Start, several: bool) -> None:
    _output.write(_output.styled(_output.paragraph("possible: the ranks do not find each other (hang)"), "bold yellow"))
    place = _place(begun.file, begun.line, several)
    _output.write(_output.paragraph(f"{place}: {_output.shown(begun.text)}", "  "))
    _output.write(_output.paragraph(f"what: {begun.words}", "  "))
    _output.write()


def _as_dict(match: Match) -> dict[str, Any]:
    record = match.record
    return {
        "name": record.name,
        "title": record.title,
        "group": record.group,
        "summary": record.impact.summary,
        "symptom": match.symptom,
        "file": match.file,
        "line": match.line,
        "text": match.text,
        "kind": match.kind,
        "cause": match.cause,
        "certain": match.kind == "found",
        "ruled_out": match.ruled_out,
        "verdicts": [_on_release(verdict) for verdict in match.verdicts],
        "would_tell": advise.would_tell(match) if match.kind == "possible" else "",
        "advice": advise.advice(match),
        "fixed_in": record.fixed_in,
        "patched": isinstance(record, Patch),
        "issues": list(record.upstream.issues),
        "pull_requests": list(record.upstream.pull_requests),
    }


def _on_release(verdict: OnRelease) -> dict[str, str]:
    return {name: getattr(verdict, name) for name in ("distribution", "version", "verdict", "reason")}
