"""Find patches, bugs without a patch, missing features, frequent errors, upstream fixes and reports by name or
number."""

from __future__ import annotations

import difflib
import pkgutil
import re
from functools import lru_cache
from typing import Any, NamedTuple, Union

from lightning_patches import patches as catalogue
from lightning_patches.known import coverage, records
from lightning_patches.known.coverage import UNRELEASED, Fix
from lightning_patches.known.frequent import VERDICTS, frequent
from lightning_patches.known.unpatched import UNPATCHED, Unpatched
from lightning_patches.notices import cut, printable
from lightning_patches.patch import Patch
from lightning_patches.patches import removed
from lightning_patches.patches.removed import Removed


class OpenReport(NamedTuple):
    """An open upstream report that was examined.

    Args:
        numbers: its issue numbers.
        verdict: the result of the examination.
    """

    numbers: tuple[int, ...]
    verdict: str


Entry = Union[Patch, Unpatched, Removed, Fix, OpenReport]


def number_in(key: str) -> int:
    """Parse ``"PR 21056"``, ``"#19813"``, ``"owner/name#19813"``, ``"issue 19813"`` or a URL.

    Return 0 for other texts.
    """
    match = re.fullmatch(
        r"(?:\S{1,200}/(?:issues|pull)/|[\w./-]{1,100}#|(?:pr|pull|issue|gh)?[\s#-]{0,3})(\d{1,7})(?:[#/?].{0,200})?",
        key.strip().lower(),
    )
    return int(match[1]) if match else 0


def is_advised(record: Union[Patch, Unpatched], name: str) -> bool:
    """True if the record names a security advisory, such as ``"cve-2024-5452"``."""
    listed = record.advisories if isinstance(record, Unpatched) else record.impact.symptoms
    return re.match("cve-|ghsa-|pysec-", name) is not None and name in map(str.lower, listed)


def find(key: str) -> tuple[Entry, ...]:
    """Return the entries with this name or number."""
    number, name = number_in(key), key.strip().lower()
    found: list[Entry] = list(catalogue.find(str(number) if number else name))
    others = (*UNPATCHED, *frequent())
    if not number:
        every: list[Union[Patch, Unpatched]] = [*catalogue.all_patches(), *UNPATCHED]
        advised = [one for one in every if is_advised(one, name)]
        rows = [row for row in removed.rows() if name in (row.name.lower(), row.member.lower())]
        named = (*found, *(one for one in others if one.name == name), *advised, *rows)
        return named if named or "_" not in name else find(name.replace("_", "-"))
    found += [one for one in others if number in one.numbers]
    for same, other_name in duplicates():
        if same == number:
            found += [patch for patch in catalogue.find(other_name) if patch not in found]
            found += [one for one in others if one.name == other_name and one not in found]
    if not found:
        fixes = [fix for fix in coverage.fixes() if fix.verdict != "patched"]
        found += [fix for fix in fixes if number in fix.numbers]
        mentioned = re.compile(rf"(?:#|issue |PR ){number}\b")
        found += [fix for fix in fixes if not found and mentioned.search(f"{fix.reason} {fix.bug}")]
    if not found:
        found += [report for report in reports() if number in report.numbers]
    return tuple(found)


def unknown(key: str) -> str:
    """Return the message for an unknown name or number."""
    key = cut(printable(key))
    close = [] if number_in(key) else difflib.get_close_matches(key.lower(), known(), n=3, cutoff=0.6)
    hint = f"Did you mean {' or '.join(close)}?" if close else "`lightning-patches list` shows all patches."
    return f"{key!r} is not the name of a patch, and not the number of a known issue or pull request. {hint}"


def in_words(one: Entry) -> dict[str, Any]:
    """Return the description of an entry without a patch."""
    if isinstance(one, Fix):
        fixed = "fixed upstream, but not released yet" if one.release == UNRELEASED else f"fixed in {one.release}"
        do = "Wait for the next release." if one.release == UNRELEASED else f"Move to Lightning {one.release} or later."
        verdict = f"{fixed}; {one.verdict}{': ' + one.reason if one.reason else ''}"
        return {"name": "", "numbers": list(one.numbers), "title": one.bug, "verdict": verdict, "do": do}
    if isinstance(one, OpenReport):
        title = "A report that is open upstream. It was examined."
        do = f"Read {records.UPSTREAM}/issues/{one.numbers[0]}; it has no fix and no patch."
        return {"name": "", "numbers": list(one.numbers), "title": title, "verdict": one.verdict, "do": do}
    assert not isinstance(one, Patch)
    numbers = [*one.upstream.issues, *one.upstream.pull_requests]
    if isinstance(one, Removed):
        verdict, do = f"Lightning {one.gone} and later do not have it.", f"Use instead: {one.instead}."
    elif not one.is_bug:
        what = VERDICTS[one.group]
        verdict, do = f"{what}{'. ' if what else ''}{one.impact.summary}", f"{one.do}."
    else:
        verdict = f"{one.impact.summary} Affected: {' or '.join(one.affected)}. No patch: {one.why_not}."
        do = f"{one.advice}."
    return {"name": one.name, "numbers": numbers, "title": one.title, "verdict": verdict, "do": do}


@lru_cache(maxsize=None)
def duplicates() -> tuple[tuple[int, str], ...]:
    """The numbers of duplicate reports, each with the name of its record."""
    text = (pkgutil.get_data(__package__, "duplicates.txt") or b"").decode("utf-8")
    rows = (line.split("|") for line in text.splitlines() if line and not line.startswith("#"))
    return tuple((int(number), name.strip()) for number, name in rows)


@lru_cache(maxsize=None)
def reports() -> tuple[OpenReport, ...]:
    """The open reports at the end of ``coverage.txt``."""
    text = (pkgutil.get_data(__package__, "coverage.txt") or b"").decode("utf-8")
    found: list[OpenReport] = []
    for line in text.partition("# Open upstream")[2].splitlines()[1:]:
        first = re.match(r"#   (\d{4,6}(?:, \d{4,6})*)\s+(.*)", line)
        more = re.match(r"#\s{8,}(.*)", line)
        if first:
            found.append(OpenReport(tuple(map(int, first[1].split(", "))), first[2]))
        elif more and found:
            found[-1] = found[-1]._replace(verdict=f"{found[-1].verdict} {more[1]}")
        elif found and not more:
            found.append(OpenReport((), ""))
    return tuple(one for one in found if one.numbers)


def numbers() -> set[int]:
    """Return the numbers of all known issues and pull requests."""
    found = {n for one in _all() for n in one.numbers}
    found |= {n for fix in coverage.fixes() for n in fix.numbers} | {n for n, _ in duplicates()}
    return found | {n for one in reports() for n in one.numbers}


def known() -> list[str]:
    """Return all names and numbers, for suggestions."""
    return [*(one.name for one in _all()), *map(str, sorted(numbers()))]


def _all() -> list[Union[Patch, Unpatched]]:
    return [*catalogue.all_patches(), *UNPATCHED, *frequent()]
