"""Markdown: a headline for each release, and a table of all bugs."""

from __future__ import annotations

from lightning_patches.cli.audit.formats.report import NOTHING, Report, row_of


def write(report: Report) -> None:
    blocks = [f"Not read: {text}." for text in report.not_read]
    for one in report.releases:
        lines = [f"**{one['headline']}**", f"Do: {one['do']}", *(f"Note: {note}." for note in one["notes"])]
        blocks.append("\n".join(lines))
    table = ["| bug | group | patched | fixed in | effect |", "| --- | --- | --- | --- | --- |"]
    for bug in report.bugs:
        row = (f"`{bug.record.name}`", *row_of(bug)[1:])
        table.append(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |")
    blocks += ["\n".join(table)] if report.bugs else []
    report.write("\n\n".join(blocks) or NOTHING)
