"""Annotations for GitHub Actions: errors for bugs that are not fixed, warnings for bugs with an opt-in patch, and
notices for the others."""

from __future__ import annotations

from typing import Iterator

from lightning_patches.cli.audit.formats.report import Report, bug_in_words

_LEVELS = {"yes": "notice", "opt-in": "warning", "no": "error"}


def write(report: Report) -> None:
    report.write("\n".join(_lines(report)))


def _lines(report: Report) -> Iterator[str]:
    for text in report.not_read:
        yield f"::warning title=not read::{_message(text)}"
    for one in report.releases:
        place = f"file={_property(one['file'])},line={one['line']}," if one["file"] else ""
        if not one["known"]:
            yield f"::warning {place}title=unknown release::{_message(one['headline'])}"
        for bug in one["bugs"]:
            message = _message(bug_in_words(one, bug))
            yield f"::{_LEVELS[bug['mended']]} {place}title={_property(bug['name'])}::{message}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
