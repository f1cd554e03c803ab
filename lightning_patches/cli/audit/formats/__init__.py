"""Output formats of ``audit``. Each writes a :class:`~lightning_patches.cli.audit.formats.report.Report`."""

from __future__ import annotations

from typing import Callable

from lightning_patches.cli import _output
from lightning_patches.cli._exit_status import OK
from lightning_patches.cli.audit.formats import github, sarif, text
from lightning_patches.cli.audit.formats.report import NOTHING, Report, as_dict, row_of


def _write_json(report: Report) -> None:
    """Write JSON. The help of ``audit`` describes the keys."""
    assert report.setting.selection is not None
    _output.write_json(
        {
            "toggle": {"value": report.setting.value, "selected": sorted(report.setting.selection.names)},
            "audited": [as_dict(one) for one in report.audited],
            "unclear": [*report.gaps.trouble, *report.gaps.unclear],
            "skipped": report.gaps.skipped,
            "ignore": report.failing,
            "fail_on": report.fail_on,
            "ok": report.status == OK,
        }
    )


def _write_markdown(report: Report) -> None:
    """Write a headline for each release, and a table of all bugs."""
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


FORMATS: dict[str, Callable[[Report], None]] = {
    "text": text.write,
    "json": _write_json,
    "github": github.write,
    "markdown": _write_markdown,
    "sarif": sarif.write,
}
