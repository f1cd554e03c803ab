"""The boundaries of each patch, and the expected observations.

A boundary is one case of one scenario on one release. On an affected release four variants run: stock must show the
bug; shim and fork must observe the same as the first fixed release, or as the recommended usage. On every other
release stock has no bug, and the shim changes nothing.

Both distributions have the same source for all targets (a test compares them). So one of them is enough:
``pytorch-lightning`` where a range begins, ``lightning`` where it ends.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Callable, Iterator, Literal, Optional

from packaging.version import Version

from tests.support import expectations, forks, old_torch, variants
from tests.support.expectations import is_right, part, shows_bug
from tests.support.variants import PATCHES, Result, Variant

import _releases  # isort: skip  (tests.support.variants has put scripts/ on the path)
from _expect import Row  # isort: skip
from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.fork import diffs as _diffs
from lightning_patches.patch import Patch

TIMEOUT = 240.0
Role = Literal["before", "affected", "fixed", "newest"]
Run = Callable[..., Result]
FIRST_FABRIC = "1.9.0"
"""The first release with Fabric, which cases with this word in their name use."""
(TO_START,) = catalogue.find("scheduler-types")
"""With current torch, no fit with a scheduler starts in 1.8.0 to 1.8.3 without it."""


@dataclass(frozen=True)
class Boundary:
    """One case on one release.

    Args:
        row: the case.
        distribution: ``"lightning"`` or ``"pytorch-lightning"``.
        version: the release.
        role: relation of the release to the patch, such as "first affected".
    """

    row: Row
    distribution: str
    version: str
    role: Role

    def __str__(self) -> str:
        return f"{self.row} {self.distribution} {self.version} {self.role}"


@cache
def bugs() -> tuple[Row, ...]:
    """Return all ``bug`` rows, in the order of the patches' names."""
    rows = itertools.chain(*expectations.tables().values())
    return tuple(sorted((row for row in rows if row.kind == "bug"), key=lambda row: row.patch))


def of(patch: str) -> list[Row]:
    """Return the cases of one patch."""
    return [row for row in bugs() if row.patch == patch]


def unproven() -> list[str]:
    """Return the patches without a scenario, an expectation or a diff, and what is missing.

    A patch that only warns needs only a test, which compares a scenario with stock.
    """
    diffs = {diff.name for diff in _diffs.series()}
    expected = {row.patch for row in bugs()}
    missing = []
    for patch in catalogue.all_patches():
        lacks = []
        own = patch.name.replace("-", "_")
        if not patch.warns and not list(PATCHES.glob(f"*/{own}.py")):
            lacks.append("a scenario")
        if patch.name not in expected and patch.affected_known and not patch.warns:
            lacks.append("an expectation")
        if patch.name not in diffs and patch.affected_known and not patch.warns:
            lacks.append("a diff")
        if any(row.old_torch != (patch.probe is not None) for row in of(patch.name)):
            lacks.append("a probe, or rows with an old torch")
        if lacks:
            missing.append(f"{patch.name} lacks {' and '.join(lacks)}")
    return missing


def boundaries(row: Row) -> list[Boundary]:
    """Return the releases at the ends of the range (of 1.x and later), around it, and the newest."""
    patch = _diffs.record(row.patch)
    everywhere = gate.affected_releases(patch)
    versions = [version for version in _releases.versions() if can_run(row, version)]
    affected = [version for version in versions if version in everywhere]
    found: list[tuple[str, Role]] = []
    if affected:
        found += [(version, "before") for version in versions[: versions.index(affected[0])][-1:]]
        of_1x = [version for version in affected if Version(version) < Version("2")]
        ends = [one for part in (of_1x, affected[len(of_1x) :]) for one in (part[:1], part[-1:])]
        found += [(version, "affected") for version in dict.fromkeys(one[0] for one in ends if one)]
    if patch.fixed_in in versions:
        found.append((str(patch.fixed_in), "fixed"))
    if versions and versions[-1] not in (*everywhere, patch.fixed_in):
        found.append((versions[-1], "newest"))
    begins = affected[:-1]
    return [
        Boundary(row, _distribution(version, role == "before" or version in begins), version, role)
        for version, role in found
        if role != "before" or (version not in everywhere and not gate.is_unknown(version, patch.affected))
    ]


def _distribution(version: str, begins: bool) -> str:
    return "pytorch-lightning" if begins else variants.distribution_of(version)


def newest_affected(row: Row) -> Optional[Boundary]:
    """Return the newest affected release; ``None`` if the case can run on none."""
    return next((one for one in reversed(boundaries(row)) if one.role == "affected"), None)


def on_one_card() -> list[Boundary]:
    """Return the newest affected release of each case for which one GPU is enough."""
    found = (newest_affected(row) for row in bugs() if row.one_card)
    return [one for one in found if one is not None]


def wheels_to_carry() -> list[Path]:
    """Return the wheels that :func:`on_one_card` and other GPU tests need on a machine without a network."""
    needed = {("lightning", "2.2.5"), ("lightning", "2.6.6")}
    for one in on_one_card():
        needed |= {(one.distribution, one.version), (one.distribution, official(one.row) or one.version)}
    return [_releases.wheel(*release) for release in sorted(needed)]


def official(row: Row) -> Optional[str]:
    """Return the first fixed release, if the case can run on it."""
    fixed_in = _diffs.record(row.patch).fixed_in
    return fixed_in if fixed_in is not None and can_run(row, fixed_in) else None


def can_run(row: Row, version: str) -> bool:
    """True if a release has the API that the case needs, and can be imported with its torch."""
    has_api = Version(version) >= Version(row.since or (FIRST_FABRIC if "fabric" in row.case else "0"))
    return has_api and (not row.old_torch or in_ranges(version, (old_torch.RELEASES,)))


def taking_part(row: Row, version: str) -> list[str]:
    """Return the patches that shim and fork have on an affected release.

    An official release has all earlier fixes, so shim and fork get those, too. Without an official release
    to compare with, they get the patches that change the same functions.
    """
    patch = _diffs.record(row.patch)
    return [patch.name] if row.alone else companions(patch, version)


def companions(patch: Patch, version: str) -> list[str]:
    own = {target.location for target in patch.targets}

    def takes_part(other: Patch) -> bool:
        if patch.fixed_in is None:
            return bool(own & {target.location for target in other.targets})
        return other.fixed_in is not None and Version(other.fixed_in) <= Version(patch.fixed_in)

    others = [p for p in catalogue.all_patches() if p.default and version in gate.affected_releases(p)]
    return sorted({patch.name, *(other.name for other in others if takes_part(other))})


def run(
    row: Row,
    variant: Variant,
    toggle: Optional[str] = None,
    case: Optional[str] = None,
    environment: tuple[tuple[str, str], ...] = (),
) -> Result:
    """Run a case in a variant. If fit can't start without some patch, every variant has it, also stock."""
    if in_ranges(variant.version, TO_START.affected_known) and row.patch != TO_START.name:
        toggle = ",".join(filter(None, (toggle if variant.shim else "none", TO_START.name)))
        variant = replace(variant, shim=True)
    return variants.run(
        row.program, variant, row.case if case is None else case, row.simulated_cuda, toggle, dict(environment),
        timeout=TIMEOUT, fresh=row.fresh, old_torch=row.old_torch,
    )  # fmt: skip


def problems(one: Boundary, run: Run = run) -> list[str]:
    """Return the deviations from the promise; empty if there are none."""
    return list((_affected if one.role == "affected" else _unaffected)(one, run))


def _affected(one: Boundary, run: Run) -> Iterator[str]:
    row, stock_variant = one.row, Variant(one.distribution, one.version)
    stock = run(row, stock_variant)
    if not shows_bug(row, stock):
        yield f"stock does not show the bug: {short(stock)}"
    fixed_in = official(row)
    like = (stock_variant, None, row.like, row.like_variables)
    reference = run(row, *(like if fixed_in is None else (Variant(one.distribution, fixed_in),)))
    expected = view(part(row.compare if fixed_in or row.compare_like is None else row.compare_like), reference)
    if fixed_in is None and row.like is None and not row.like_variables:
        expected["ended well"] = True  # the recommended usage is part of the stock run, which may end with the bug
    elif not reference.ok or shows_bug(row, reference):
        yield f"the reference ({fixed_in or 'recommended usage'}) is not right: {short(reference)}"
    if not reference.observations:
        yield f"the reference ({fixed_in or 'recommended usage'}) observed nothing: {short(reference)}"
    names, release = taking_part(row, one.version), (one.distribution, one.version)
    toggle = ",".join(names)
    with_diffs = {diff.name for diff in _diffs.series()}
    fork = forks.directory_of(one.distribution, one.version, [name for name in names if name in with_diffs])
    results = {
        "shim": run(row, Variant(*release, shim=True), toggle),
        "fork": run(row, Variant(*release, directory=fork)),
    }
    for name, result in results.items():
        seen = view(part(row.compare), result)
        if shows_bug(row, result):
            yield f"{name} shows the bug: {short(result)}"
            if name == "shim":  # with strict, a patch that is not applied ends the program with the reason
                yield f"shim with strict: {short(run(row, Variant(*release, shim=True), f'{toggle},strict'))}"
        elif not same(seen, expected):
            yield f"{name} differs\n  expected {expected}\n  observed {seen}\n  {short(result)}"
        elif not is_right(row, result):
            yield f"{name} is not right: {seen}"


def _unaffected(one: Boundary, run: Run) -> Iterator[str]:
    row = one.row
    stock = run(row, Variant(one.distribution, one.version))
    if not stock.ok or shows_bug(row, stock):
        yield f"stock is not right on a release that is not affected: {short(stock)}"
    # A selection by name keeps the patches for imports; leave them out, too.
    shim = run(row, Variant(one.distribution, one.version, shim=True), f"none,{row.patch}")
    if not same(view(part(row.compare), stock), view(part(row.compare), shim)):
        yield f"shim differs from stock: {short(shim)}"
    notice = f"lightning_patches: {one.distribution} "
    if shim.output.count(notice) > stock.output.count(notice):
        yield f"the shim applied something: {short(shim)}"


def problems_by_default(one: Boundary) -> list[str]:
    """Return a problem if the shim with all default patches does not fix the bug."""
    result = run(one.row, Variant(one.distribution, one.version, shim=True))
    return [] if result.ok and not shows_bug(one.row, result) else [f"the default set does not fix the bug: {result}"]


def view(part: Any, result: Result) -> dict[str, Any]:
    """Return the compared parts of a run: if it succeeded, and the chosen part of its observations."""
    try:
        return {"ended well": result.ok, "observed": part(result.observations)}
    except (KeyError, IndexError, TypeError) as error:
        return {"ended well": result.ok, "not observed": f"{type(error).__name__}: {error}"}


def same(one: Any, other: Any) -> bool:
    """True if both are equal; NaN equals NaN."""
    return json.dumps(one, sort_keys=True, default=repr) == json.dumps(other, sort_keys=True, default=repr)


def short(result: Result) -> str:
    lines = [line for line in result.output.strip().splitlines() if line.strip()]
    return f"status {result.status}, last words: {' | '.join(lines[-3:])[-600:]}"
