"""JSON. The help of ``audit`` describes the keys."""

from __future__ import annotations

from lightning_patches.cli import _output
from lightning_patches.cli._exit_status import OK
from lightning_patches.cli.audit.formats.report import Report, as_dict


def write(report: Report) -> None:
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
