"""In: the answer. Out: text on the terminal, or JSON."""

from __future__ import annotations

from typing import Any

from lightning_patches.cli import _output
from lightning_patches.cli.diagnose import answer as answers
from lightning_patches.cli.diagnose.answer import Answer
from lightning_patches.cli.diagnose.candidates import Match
from lightning_patches.cli.diagnose.verdicts import OnRelease
from lightning_patches.patch import Patch


def write(one: Answer) -> None:
    style = "bold red" if one.alert or (one.main is not None and one.main.cause) or one.hangs else "bold"
    _output.write(_output.styled(_output.paragraph(one.verdict), style))
    _output.write(_output.styled(_output.paragraph(f"Do: {one.do}"), "bold"))
    for title, lines in (("Why", one.why), ("More", one.more)):
        for index, line in enumerate(lines):
            _output.write(_output.paragraph(f"{title}: {line}" if not index else line, "" if not index else "  "))
    paste = answers.to_paste(one)
    if paste:
        _output.write(f"To paste: {paste}")


def write_end(program: str, status: int) -> None:
    by = f" ({answers.signal_name(status)})" if answers.signal_name(status) else ""
    _output.write(f"{_output.printable(program)} ended with status {status}{by}.")


def as_dict(one: Answer) -> dict[str, Any]:
    names = [log.name for log in one.logs]
    known = one.facts
    return {
        "file": names[0],
        "files": names,
        "verdict": one.verdict,
        "do": one.do,
        "why": one.why,
        "more": one.more,
        "written_by": {"distribution": known.distribution, "releases": list(known.releases), "by": known.by},
        "matches": [_as_dict(match) for match in one.matches],
        "error": one.unknown.words if one.unknown is not None else None,
        "hangs": [hang.as_dict() for hang in one.hangs],
        "out_of_sync": [
            {"file": found.file, "line": found.line, "text": found.text, "do": found.do} for found in one.out_of_sync
        ],
        "start": one.standing.as_dict() if one.standing is not None else None,
        "left_out": [{"file": log.name, "text": text} for log in one.logs for text in log.left_out],
        "to_paste": answers.to_paste(one),
        "closing": one.do,
        "ok": one.ok,
    }


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
        "ground": match.ground,
        "verdicts": [_on_release(verdict) for verdict in match.verdicts],
        "would_tell": answers.would_tell(match) if match.kind == "possible" else "",
        "advice": answers.advice(match),
        "fixed_in": record.fixed_in,
        "patched": isinstance(record, Patch),
        "issues": list(record.upstream.issues),
        "pull_requests": list(record.upstream.pull_requests),
    }


def _on_release(verdict: OnRelease) -> dict[str, str]:
    return {name: getattr(verdict, name) for name in ("distribution", "version", "verdict", "reason")}
