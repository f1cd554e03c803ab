"""Text for people: a headline, advice, notes and a table for each release."""

from __future__ import annotations

from lightning_patches.cli import _output
from lightning_patches.cli.audit.audited import Audited
from lightning_patches.cli.audit.formats.report import NOTHING, Report, advice, headline, row_of
from lightning_patches.engine import toggle
from lightning_patches.known import coverage
from lightning_patches.known.unpatched import Unpatched

MAX_FILES = 3
"""Most files of a release that the summary names."""
_STYLES = {"yes": "green", "opt-in": "yellow", "no": "bold red"}
_VERDICTS = {
    "patched": "have a patch here",
    "open": "have no patch yet",
    "not patchable": "cannot be patched in a running program",
    "nothing to patch": "need no patch",
    "left out": "have no patch on purpose",
}


def write(report: Report) -> None:
    _write_releases(report)
    for text in (*report.gaps.trouble, *report.gaps.unclear):
        _write(f"unclear: {text}.")
    for text in report.gaps.skipped:
        _write(f"not read: {text}.")
    if report.failing:
        _output.write()
        _write(f"To accept these bugs, add `{report.ignore}`.")


def _write(text: str) -> None:
    _output.write(_output.paragraph(text))


def _write_releases(report: Report) -> None:
    audited = report.audited
    if not audited:
        _write_nothing(report)
        return
    same_text: dict[tuple[str, str], list[Audited]] = {}
    for one in audited:
        same_text.setdefault((headline(one), advice(one)), []).append(one)
    groups = list(same_text.values())
    if sum(not report.is_secondary(group[0]) for group in groups) > 1:
        _write_summary(groups)
    for number, group in enumerate(groups):
        if number:
            _output.write()
        _write_release(group, report)
    _write_bugs(report)
    if all(one.is_compromised or not one.bugs for one in audited):
        return
    _output.write()
    value = report.setting.value
    when = "is not set: the default set counts as applied" if value is None else f"is {_output.cut(value)!r}"
    hidden = "" if report.show_all else " `--all` also lists the bugs that the patches fix."
    _write(f"{toggle.VARIABLE} {when}. `lightning-patches show BUG` shows details.{hidden}")


def _write_summary(groups: list[list[Audited]]) -> None:
    rows = []
    for group in groups:
        one = group[0]
        release = f"{one.distribution} {one.version}" if one.version else str(one.requirement)
        counts = map(str, one.figures) if one.known else ["?"] * len(one.figures)
        rows.append((release, *counts, _places(group)))
    _output.write_table(("RELEASE", "KNOWN", "DEFAULT", "OPT-IN", "NOT FIXED", "FILE"), rows)
    _output.write()


def _places(group: list[Audited]) -> str:
    places = [f"{one.file}, line {one.line}" for one in group if one.file]
    more = f"; and {len(places) - MAX_FILES} more" if len(places) > MAX_FILES else ""
    return "; ".join(places[:MAX_FILES]) + more


def _write_nothing(report: Report) -> None:
    text = NOTHING
    if report.gaps.trouble:
        text = "Some files may require Lightning, but could not be parsed. The others do not require it."
    elif len(report.gaps):
        text = "No file that `audit` reads names Lightning."
    _output.write(text)
    _output.write("Do: name the file that requires it, or a release: `lightning-patches audit lightning==2.2.5`.")


def _write_release(group: list[Audited], report: Report) -> None:
    """Write a release that is required in several places."""
    one = group[0]
    _write(headline(one))
    _write(f"Do: {advice(one)}")
    if len(report.audited) > 1 and one.file:
        _write(f"in: {_places(group)}")
    for note in dict.fromkeys(note for each in group for note in each.notes):
        _write(f"note: {note}.")
    if report.is_secondary(one) and not report.show_all:
        pinned = f"{one.distribution}=={one.version}"
        _write(f"If your scripts import pytorch_lightning, run `lightning-patches audit {pinned}`.")
        return
    if one.known and (report.show_fixes or not one.is_compromised):
        _write_upstream_fixes(one.version or "", report.show_fixes)


def _write_bugs(report: Report) -> None:
    if report.bugs:
        _output.write()
        _output.write_table(
            ("BUG", "GROUP", "PATCHED", "FIXED IN", "EFFECT"),
            [row_of(bug) for bug in report.bugs],
            [_STYLES[bug.fixed] for bug in report.bugs],
        )
    for bug in report.bugs:
        if isinstance(bug.record, Unpatched):
            _output.write()
            _write(f"{bug.record.name}: no patch: {bug.reason}. {bug.record.advice}.")
        elif bug.refused:
            _output.write()
            _write(f"{bug.record.name}: the patch is not applied here: {bug.reason}.")


def _write_upstream_fixes(version: str, show_fixes: bool) -> None:
    counts = coverage.counts(version)
    if not any(counts.values()):
        return
    parts = ", ".join(f"{count} {_VERDICTS[verdict]}" for verdict, count in counts.items() if count)
    hint = "" if show_fixes else " `--fixes` lists those without a patch."
    _output.write()
    _write(f"Upstream has fixed {sum(counts.values())} bugs of {version} in later releases: {parts}.{hint}")
    if show_fixes:
        rows = [
            (fix.release, f"#{fix.numbers[0]}", ": ".join(filter(None, (fix.verdict, fix.reason))), fix.bug)
            for fix in coverage.fixed_after(version)
            if fix.verdict != "patched"
        ]
        _output.write()
        _output.write_table(("FIXED IN", "UPSTREAM", "VERDICT", "BUG"), rows)
