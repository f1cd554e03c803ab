"""Verdicts on every upstream fix since 1.8.0.

The records of patches name the fixes that they contain. ``coverage.txt`` has the other fixes, and those that a patch
contains in part, one per line.
"""

from __future__ import annotations

import pkgutil
import re
from functools import lru_cache
from typing import Iterator, NamedTuple, Optional

from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.patch import Patch

VERDICTS = ("patched", "open", "not patchable", "nothing to patch", "left out")
UNRELEASED = "unreleased"


class Fix(NamedTuple):
    """An upstream fix.

    Args:
        release: first release with the fix, or ``"unreleased"`` if it is only on master.
        since: first release with the bug. For a patched bug, use the patch's record instead.
        numbers: pull request and issue; the first is the one in upstream's changelog.
        verdict: one of :data:`VERDICTS`.
        patches: names of the patches that contain it.
        reason: why there is no patch; "" for ``patched`` and ``open``.
        bug: the bug in one line; "" if it is in the patch's record.
    """

    release: str
    since: str
    numbers: tuple[int, ...]
    verdict: str
    patches: tuple[str, ...] = ()
    reason: str = ""
    bug: str = ""


def parse_line(line: str) -> Fix:
    """Parse a line of ``coverage.txt``.

    Raises:
        ValueError: the line does not have the format that the comment at the top of the file describes.
    """
    release, since, numbers, decision, bug = (text.strip() for text in f"{line}|".split("|")[:5])
    verdict, _, reason = (part.strip() for part in decision.partition(":"))
    if verdict not in VERDICTS[1:] or bool(reason) is (verdict == "open") or not bug or line.count("|") != 4:
        raise ValueError(f"not a line of coverage.txt: {line!r}")
    found = tuple(int(number) for number in numbers.split(","))
    return Fix(release, since or "2.0.0", found, verdict, reason=reason, bug=bug)


def _patched() -> Iterator[Fix]:
    """Yield each upstream fix that patches contain, with all of these patches."""
    carried: dict[int, list[Patch]] = {}
    for patch in catalogue.all_patches():
        for number in patch.upstream.pull_requests if patch.affected_known and not patch.warns else ():
            carried.setdefault(number, []).append(patch)
    for number, patches in carried.items():
        upstream = patches[0].upstream
        release = dict(upstream.others).get(number) or upstream.fixed_in or (UNRELEASED if upstream.merged else "")
        if release:
            numbers = (number, *(upstream.issues if number == upstream.pull_requests[0] else ()))
            yield Fix(release, gate.KNOWN_SINCE, numbers, "patched", tuple(patch.name for patch in patches))


def order(release: str) -> tuple[int, ...]:
    """Return a sort key for releases; ``"unreleased"`` is last."""
    return (10**6,) if release == UNRELEASED else tuple(int(number) for number in re.findall(r"\d+", release))


@lru_cache(maxsize=None)
def fixes() -> tuple[Fix, ...]:
    """All fixes, newest release first."""
    text = (pkgutil.get_data(__package__, "coverage.txt") or b"").decode("utf-8")
    written = [parse_line(line) for line in text.splitlines() if line and not line.startswith("#")]
    decided = {number for fix in written for number in fix.numbers}
    found = [*written, *(fix for fix in _patched() if fix.numbers[0] not in decided)]
    return tuple(sorted(found, key=lambda fix: (order(fix.release), fix.numbers), reverse=True))


def fixed_after(version: str) -> tuple[Fix, ...]:
    """Return the later fixes of bugs that a release has; empty if ``version`` is not a valid version."""
    from packaging.version import InvalidVersion, Version

    try:
        release = Version(version)
    except InvalidVersion:
        return ()
    affected = {patch.name: patch.affected_known for patch in catalogue.all_patches()}
    return tuple(
        fix
        for fix in fixes()
        if (fix.release == UNRELEASED or release < Version(fix.release))
        and Version(fix.since) <= release
        and (not fix.patches or any(in_ranges(version, affected[name]) for name in fix.patches))
    )


def counts(version: Optional[str]) -> dict[str, int]:
    """Return the number of fixes that a release lacks, by verdict."""
    found = fixed_after(version or "")
    return {verdict: sum(fix.verdict == verdict for fix in found) for verdict in VERDICTS}
