"""Write an answer on the terminal or as JSON."""

from __future__ import annotations

from typing import Any

from lightning_patches.cli import _output
from lightning_patches.cli.diagnose import about, about_match, advice, sentences
from lightning_patches.cli.diagnose.answer import Answer
from lightning_patches.cli.diagnose.matches import Match
from lightning_patches.cli.diagnose.start import StalledStart
from lightning_patches.patch import Patch


def write(one: Answer) -> None:
    text = sentences.write(one)
    is_certain = one.compromised is not None or (one.main is not None and one.main.cause) or one.hangs
    _output.write(_output.styled(_output.paragraph(text.verdict), "bold red" if is_certain else "bold"))
    _output.write(_output.styled(_output.paragraph(f"Do: {text.do}"), "bold"))
    for title, lines in (("Why", text.why), ("More", text.more)):
        for index, line in enumerate(lines):
            _output.write(_output.paragraph(f"{title}: {line}" if not index else line, "" if not index else "  "))
    to_paste = sentences.to_paste(one)
    if to_paste:
        _output.write(f"To paste: {to_paste}")


def write_end(program: str, status: int) -> None:
    by = f" ({about.signal_name(status)})" if about.signal_name(status) else ""
    _output.write(f"{_output.printable(program)} ended with status {status}{by}.")


def as_dict(one: Answer) -> dict[str, Any]:
    text, facts = sentences.write(one), one.facts
    names = [log.name for log in one.logs]
    return {
        "file": names[0],
        "files": names,
        "verdict": text.verdict,
        "do": text.do,
        "why": list(text.why),
        "more": list(text.more),
        "written_by": {"distribution": facts.distribution, "releases": list(facts.releases), "by": facts.by},
        "matches": [_match(match) for match in one.matches],
        "error": one.unknown.words if one.unknown is not None else None,
        "hangs": [
            {"file": hang.file, "verdict": hang.verdict, "do": hang.do, "count": hang.count, "ranks": list(hang.ranks)}
            for hang in one.hangs
        ],
        "out_of_sync": [
            {"file": found.file, "line": found.line, "text": found.text, "do": about.out_of_sync(found)}
            for found in one.out_of_sync
        ],
        "start": _start(one.subject) if isinstance(one.subject, StalledStart) else None,
        "left_out": [{"file": log.name, "text": part} for log in one.logs for part in log.left_out],
        "to_paste": sentences.to_paste(one),
        "closing": text.do,
        "ok": one.ok,
    }


def _start(begun: StalledStart) -> dict[str, Any]:
    return {**vars(begun), "ranks": list(begun.ranks), "words": about.stalled(begun)}


def _match(match: Match) -> dict[str, Any]:
    record = match.record
    return {
        "name": record.name,
        "title": record.title,
        "group": record.group,
        "summary": record.impact.summary,
        "symptom": match.symptom,
        "file": match.log.name,
        "line": match.line,
        "text": match.text,
        "kind": match.kind,
        "cause": match.cause,
        "certain": match.kind == "found",
        "ruled_out": match.ruled_out,
        "ground": match.ground,
        "verdicts": [
            {name: getattr(verdict, name) for name in ("distribution", "version", "verdict", "reason")}
            for verdict in match.verdicts
        ],
        "would_tell": about_match.would_tell(match) if match.kind == "possible" else "",
        "advice": advice.write(match),
        "fixed_in": record.fixed_in,
        "patched": isinstance(record, Patch),
        "issues": list(record.upstream.issues),
        "pull_requests": list(record.upstream.pull_requests),
    }
