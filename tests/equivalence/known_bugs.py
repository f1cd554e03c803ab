"""The known bugs that each release shows, on paper: ``upstream/evidence/known_bugs.txt``, ``KNOWN_BUGS.md`` and the
README's table."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from packaging.version import Version

from lightning_patches import patches as catalogue
from lightning_patches.cli import audit
from lightning_patches.engine import gate, toggle
from tests.equivalence import evidence, matrix
from tests.equivalence.evidence import Seen
from tests.equivalence.proof import Proof

DISTRIBUTION = "pytorch-lightning"
RECORD = evidence.DIRECTORY / "known_bugs.txt"
SHOWN = ("2.0.0", "2.1.4", "2.2.5", "2.3.3", "2.5.1", "2.6.6")
"""The releases in the README's table."""
ARMS = ("stock", "shim", "all")
"""As released, with the default set, and with the opt-in patches, too."""
Found = dict[str, dict[str, dict[str, str]]]
"""By release, arm and patch, what was seen: the worst of its cases."""


def subject(proof: Proof, version: str, arm: str) -> str:
    """What an outcome depends on; it holds as long as that is the same."""
    wanted = {"stock": (), "shim": (True,), "all": (True, False)}[arm]
    patches = [p.name for p in catalogue.all_patches() if p.default in wanted and version in gate.affected_releases(p)]
    return matrix.digest(proof, tuple(patches), diffs=False)


def read() -> tuple[dict[str, Any], list[Seen]]:
    """The record's circumstances, and what was seen of each case in each arm and release."""
    proofs = {str(proof): proof for proof in matrix.proofs()}
    importable = set(matrix.importable(DISTRIBUTION))

    def now(one: Seen) -> str:
        name, _, arm = one.case.rpartition(" ")
        return subject(proofs[name], one.place[1], arm) if name in proofs and one.place[1] in importable else ""

    return evidence.read(RECORD, now)


def counted(seen: list[Seen]) -> Found:
    """What was seen of each patch."""
    found: Found = {}
    for one in seen:
        name, _, arm = one.case.rpartition(" ")
        of_arm = found.setdefault(one.place[1], {name: {} for name in ARMS})[arm]
        patch = name.partition(":")[0]
        if of_arm.get(patch) != "bug":
            of_arm[patch] = "bug" if one.saw == "bug" else of_arm.get(patch, "none")
    return found


def worse(seen: list[Seen]) -> list[str]:
    """The releases with a bug that shows only with the shim: there must be none."""
    found = counted(seen)
    return [
        f"{version} {patch} ({arm})"
        for version in sorted(found, key=Version)
        for arm in ARMS[1:]
        for patch, saw in sorted(found[version][arm].items())
        if saw == "bug" and found[version]["stock"].get(patch) != "bug"
    ]


def left(found: Found, arm: str) -> list[str]:
    """Rows of a table: which bugs show in this arm, by stretches of releases in which it was run."""
    names = {
        version: ", ".join(f"`{patch}`" for patch, saw in sorted(found[version][arm].items()) if saw == "bug")
        for version in sorted(found, key=Version)
        if found[version][arm]
    }
    return [f"| {evidence.told(group)} | {bugs or 'nothing'} |" for bugs, group in groupby(names, names.__getitem__)]


def page() -> str:
    """``upstream/KNOWN_BUGS.md``: every release, and what is left with the patches."""
    facts, seen = read()
    found, stale = counted(seen), sum(one.stale for one in seen)
    lines = [
        "# Known bugs by release",
        "",
        f"**{len(seen)} outcomes: {len(seen) - stale} hold on this code, {stale} are stale**: something that they "
        "depend on has changed since they were run.",
        "",
        "Made of `evidence/known_bugs.txt`, which `scripts/prove known_bugs` writes. What is left with the patches is "
        "opt-in, since somebody may rely on how it is; in 2.0 also a `self.log` that moves its metrics. Of 1.5 to 1.9 "
        "only what keeps them from running on today's packages is known (`PROGRAMS_OF_1X.md`).",
        "",
        table(facts, seen),
        "",
        "| release | left with the default set |",
        "| --- | --- |",
        *left(found, "shim"),
        "",
        "| release | left with `all` |",
        "| --- | --- |",
        *(left(found, "all") or ["| none | not run |"]),
    ]
    return "\n".join(lines) + "\n"


def readme_table() -> str:
    """The table in the README."""
    facts, seen = read()
    return table(facts, seen, SHOWN)


def table(facts: dict[str, Any], seen: list[Seen], only: tuple[str, ...] = ()) -> str:
    """The table in Markdown: a row for each stretch of releases with the same bugs, or for each of some releases."""
    found, stale = counted(seen), sum(one.stale for one in seen)
    total = len({patch for arms in found.values() for patch in arms["stock"]})
    chosen = sorted((v for v in found if v in only or not only), key=Version)
    arms = ARMS if not only or any(found[v]["all"] for v in chosen) else ARMS[:2]
    lines = ["| release | stock | | with `lightning_patches` | |", "| --- | ---: | --- | ---: | --- |"]
    if "all" in arms:
        lines = [f"{lines[0]} `all` |", f"{lines[1]} ---: |"]
    for counts, group in groupby(chosen, lambda v: tuple(_count(found[v][arm]) for arm in arms)):
        stock, shim, *everything = counts
        cells = f"{stock} | {_bar(stock)} | {shim} | {_bar(shim)} |"
        told = "".join(f" {'not run' if one is None else one} |" for one in everything)
        lines.append(f"| {evidence.told(group)} | {cells}{told}")
    how = "stock, with the default set, and with all patches" if "all" in arms else "stock and with the default set"
    lines += [
        "",
        f"How many of {total} known bugs show (a block for three), without a GPU: the scenarios in `tests/scenarios` "
        f"run on {len(found)} releases of {DISTRIBUTION}, {how} (torch "
        f"{facts['torch']}, Python {facts['python']}, last on {facts['date']}, {100 * stale // len(seen)} % on older "
        f"code of the patches). `audit` counts more, {_audited(SHOWN[2])} in "
        f"{SHOWN[2]}: also what only costs time, what no scenario shows, what has been patched since, and what has no "
        "patch.",
    ]
    return "\n".join(lines)


def _audited(version: str) -> int:
    default = toggle.parse("default", catalogue.all_patches())
    (release,) = audit.audit_requirements([f"{DISTRIBUTION}=={version}"], [], default)
    return len(release.counted)


def _bar(bugs: int | None) -> str:
    return "█" * ((bugs or 0) // 3)


def _count(of_arm: dict[str, str]) -> int | None:
    """How many bugs show in an arm; ``None`` if it was not run."""
    return sum(saw == "bug" for saw in of_arm.values()) if of_arm else None
