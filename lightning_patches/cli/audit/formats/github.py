"""Annotations for GitHub Actions, one for each file.

It is an error if a bug is not fixed, a warning if a release is unknown or a bug has only an opt-in patch, or a notice.
"""

from __future__ import annotations

from typing import Iterator

from lightning_patches.cli.audit.audited import Audited
from lightning_patches.cli.audit.formats.report import Report, advice, headline


def write(report: Report) -> None:
    report.write("\n".join(_lines(report)))


def _lines(report: Report) -> Iterator[str]:
    for text in report.not_read:
        yield f"::warning title=not read::{_message(text)}"
    files: dict[str, list[Audited]] = {}
    for one in report.audited:
        if not one.known or report.bugs_of(one):
            files.setdefault(one.file, []).append(one)
    for file, releases in files.items():
        place = f"file={_property(file)},line={releases[0].line}," if file else ""
        title = ", ".join(dict.fromkeys(str(one.requirement or one.distribution) for one in releases))
        message = "\n".join(dict.fromkeys(_in_words(report, one) for one in releases))
        yield f"::{_level(report, releases)} {place}title={_property(title)}::{_message(message)}"


def _in_words(report: Report, one: Audited) -> str:
    """Return the result for a release, the advice, and the bugs that are not fixed."""
    names = ", ".join(bug.record.name for bug in report.bugs_of(one) if bug.fixed == "no" or report.show_all)
    bugs = f" {'Bugs' if report.show_all else 'Not fixed'}: {names}." if names else ""
    return f"{headline(one)} Do: {advice(one)}{bugs}"


def _level(report: Report, releases: list[Audited]) -> str:
    states = {bug.fixed for one in releases for bug in report.bugs_of(one) if not bug.machine}
    if "no" in states:
        return "error"
    return "warning" if "opt-in" in states or not all(one.known for one in releases) else "notice"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
