"""The result of an audit, and its sentences."""

from __future__ import annotations

import itertools
from typing import Any, Iterator, NamedTuple, Sequence

from lightning_patches.cli import _output
from lightning_patches.cli._toggle import Toggle
from lightning_patches.cli.audit.audited import Audited
from lightning_patches.cli.audit.collect import Gaps
from lightning_patches.engine import gate, toggle
from lightning_patches.known import coverage, records
from lightning_patches.known.bugs import Bug
from lightning_patches.known.unpatched import ADVICE, Unpatched
from lightning_patches.patch import GROUPS

NOTHING = "There is no Lightning here: nothing to audit."
_FIXED = {"yes": "yes", "opt-in": "opt-in", "no": "NO"}
_OPT_IN = f"Enable an opt-in patch only if you have its bug: `{toggle.VARIABLE}=default,NAME`."
_KNOWN = "`lightning-patches audit lightning` shows the newest known release."


class Report(NamedTuple):
    """The result of an audit.

    Args:
        audited: the releases.
        gaps: the parts that could not be parsed or read.
        setting: the setting of LIGHTNING_PATCHES.
        failing: names of the bugs that cause exit status 1.
        fail_on: the option ``--fail-on``.
        status: the exit status.
        show_all: True to also show the bugs that the patches fix.
        show_fixes: True to list upstream's later fixes that have no patch.
    """

    audited: list[Audited]
    gaps: Gaps
    setting: Toggle
    failing: list[str]
    fail_on: str
    status: int
    show_all: bool = False
    show_fixes: bool = False

    @property
    def not_read(self) -> list[str]:
        return [*self.gaps.trouble, *self.gaps.skipped]

    @property
    def releases(self) -> list[dict[str, Any]]:
        """The releases with the bugs to show, with the keys of ``--json``."""
        return [as_dict(one, self.show_all) for one in self.audited]

    def is_secondary(self, one: Audited) -> bool:
        """True for a pytorch-lightning that is installed together with ``lightning``, since few scripts import it."""
        installed = [each.distribution for each in self.audited if each.requirement is None]
        return one.requirement is None and one.distribution == "pytorch-lightning" and "lightning" in installed

    def bugs_of(self, one: Audited) -> list[Bug]:
        """Return the bugs of a release to show."""
        return one.bugs if self.show_all else [bug for bug in one.bugs if not (bug.covered or self.is_secondary(one))]

    @property
    def bugs(self) -> list[Bug]:
        """The bugs to show, each once: those that are not fixed in any release first."""
        shown: dict[str, Bug] = {}
        for bug in itertools.chain.from_iterable(map(self.bugs_of, self.audited)):
            if bug.fixed == "no" or bug.record.name not in shown:
                shown[bug.record.name] = bug
        return sorted(shown.values(), key=lambda bug: (bug.covered, GROUPS.index(bug.record.group)))

    def write(self, text: str) -> None:
        """Write text for another tool to stdout, and a hint for the user to stderr."""
        if text:
            _output.write(text)
        if self.failing:
            _output.complain(f"To accept these bugs, add {self.ignore}")

    @property
    def ignore(self) -> str:
        """The options with which the user accepts all failing bugs."""
        return " ".join(f"--ignore {name}" for name in self.failing)


def as_dict(one: Audited, show_all: bool = True) -> dict[str, Any]:
    return {
        **vars(one),
        "do": advice(one),
        "headline": headline(one),
        "bugs": [bug_as_dict(bug) for bug in one.bugs if show_all or not bug.covered],
        "figures": one.figures.as_dict(),
        "upstream": coverage.counts(one.version),
    }


def bug_as_dict(bug: Bug) -> dict[str, Any]:
    record = bug.record
    unpatched = record if isinstance(record, Unpatched) else None
    return {
        "name": record.name,
        "title": record.title,
        "group": record.group,
        "harm": record.impact.summary,
        "affected": list(record.affected),
        "fixed_in": record.fixed_in,
        "drop_at": None if unpatched else record.fixed_in,
        "move_to": unpatched.move_to if unpatched else record.fixed_in,
        "cover": bug.cover,
        "covered": bug.covered,
        "mended": bug.fixed,
        "reason": bug.reason,
        "issues": list(record.upstream.issues),
        "pull_requests": list(record.upstream.pull_requests),
        "advisories": list(unpatched.advisories) if unpatched else [],
    }


def row_of(bug: Bug) -> tuple[str, str, str, str, str]:
    """Return the row of a bug in tables: its name, group, state, fixed release and effect."""
    record = bug.record
    return record.name, record.group, _FIXED[bug.fixed], records.fixed_in(record), record.impact.summary


def headline(one: Audited) -> str:
    """Return the result for a release in one or two sentences."""
    what = f"{one.distribution} {one.version}" if one.version else str(one.requirement)
    if one.version is None:
        return f"{what}: the release is unknown, so its bugs are unknown."
    if not one.known and not one.bugs:
        return f"{what} is not a known release: its bugs are unknown."
    if one.is_compromised:
        return f"{what} is a compromised release: nothing in it is patched, and its other bugs are not counted."
    counted = [bug for bug in one.bugs if bug.is_counted]
    words = {
        "yes": f"{'' if one.has_patches else 'would be '}fixed by the patches",
        "opt-in": "with an opt-in patch",
        "no": "not fixed",
    }
    counts = {state: sum(bug.fixed == state for bug in counted) for state in words}
    parts = ", ".join(f"{count} {words[state]}" for state, count in counts.items() if count)
    text = f"{what} has {len(counted)} known bug{'s' if len(counted) != 1 else ''}{': ' if parts else ''}{parts}."
    more = len(one.bugs) - len(counted)
    if more:
        machines = sorted({bug.machine for bug in one.bugs} - {""})
        conditions = [*(f"on {machine}" for machine in machines), *["with an older torch"] * (more > len(machines))]
        text += f" {more} more occur{'s' if more == 1 else ''} only {' or '.join(conditions)}."
    if one.excluded:
        text += f" {len(one.excluded)} more can't occur with the other packages."
    if gate.is_unknown(one.version, ()):
        text += " Releases 1.5 to 1.7 were checked only for bugs that keep them from running with current packages."
    return text


def advice(one: Audited) -> str:
    """Return advice for a release in one or two sentences."""
    if one.is_compromised:
        return f"{ADVICE}."
    if one.version is None:
        return f"pin a release, or install it and run `lightning-patches audit` there. {_KNOWN}"
    if not one.known and not one.bugs:
        return f"check the version number, or use a known release. {_KNOWN}"
    unpatched = [bug.record for bug in one.bugs if isinstance(bug.record, Unpatched) and not bug.machine]
    steps = []
    covered = sum(bug.covered and bug.is_counted for bug in one.bugs)
    if covered and not one.has_patches:
        steps.append(f"add `import lightning_patches` above every import of Lightning, which fixes {covered} of them")
    left_out = sum(bug.left_out for bug in one.bugs)
    if left_out:
        steps.append(f"change {toggle.VARIABLE}, which does not select {left_out} default patches")
    steps += _without_patch(one.distribution, unpatched)
    opt_in = f" {_OPT_IN}" if any(bug.cover == "opt-in" and not bug.refused for bug in one.bugs) else ""
    return f"{'; '.join(steps) or 'nothing'}.{opt_in}"


def _without_patch(distribution: str, records: Sequence[Unpatched]) -> Iterator[str]:
    """Yield advice for bugs that have no patch: the record's advice, or the release to move to."""
    for record in records:
        if record.do:
            yield f"{record.do[0].lower()}{record.do[1:]}, for {record.name}"
    others = [record for record in records if not record.do]
    if others:
        move_to = max((record.move_to for record in others), key=coverage.order)
        yield f"move to {distribution}=={move_to} or newer, for {', '.join(record.name for record in others)}"
