"""Markdown: a headline and a table for each release."""

from __future__ import annotations

from lightning_patches.cli.audit.formats.report import NOTHING, Report


def write(report: Report) -> None:
    blocks = [f"Not read: {text}." for text in report.not_read]
    for one in report.releases:
        lines = [f"**{one['headline']}**", f"Do: {one['do']}", *(f"Note: {note}." for note in one["notes"])]
        if one["bugs"]:
            lines += ["", "| bug | group | patched | fixed in | effect |", "| --- | --- | --- | --- | --- |"]
        for bug in one["bugs"]:
            fixed = "NO" if bug["mended"] == "no" else bug["mended"]
            row = (f"`{bug['name']}`", bug["group"], fixed, bug["fixed_in"] or "never", bug["harm"])
            lines.append(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |")
        blocks.append("\n".join(lines))
    report.write("\n\n".join(blocks) or NOTHING)
