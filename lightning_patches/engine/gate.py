"""Decide from version and source on disk if a patch applies to an installed namespace. Changes nothing."""

from __future__ import annotations

import importlib
import inspect
import operator
import re
import sys
from functools import lru_cache
from typing import Iterable, Literal, Mapping, NamedTuple, Optional

from packaging.version import InvalidVersion

from lightning_patches.engine import fingerprints
from lightning_patches.engine.distributions import FORBIDDEN, Namespace, Part
from lightning_patches.engine.ranges import in_ranges, public_version, version_of
from lightning_patches.patch import Need, Patch, Target

Verdict = Literal[
    "applied",
    "pending",
    "not-affected",
    "not-known",
    "fixed-upstream",
    "disabled",
    "not-supported",
    "drifted",
    "failed",
]
KNOWN_SINCE = "1.8.0"
"""The first release that was checked for all known bugs. Earlier releases were checked only for bugs that keep them
from starting."""
ELSEWHERE = ("not-affected", "not-known", "fixed-upstream")
"""Verdicts on a patch that the installed release does not need, or for which the patch was not made."""
REFUSED = ("not-supported", "drifted", "failed")
"""Verdicts on a patch that may be needed but cannot be applied. Under ``strict``, they are errors for selected
patches."""


class Decision(NamedTuple):
    """The decision on a patch in a namespace.

    Args:
        verdict: the verdict. ``pending`` means that the patch can be applied.
        reason: the complete reason.
        condition: for ``pending``, a further condition besides the import of Lightning.
    """

    verdict: Verdict
    reason: str
    condition: str = ""


def decide(patch: Patch, namespace: Namespace) -> Decision:
    """Decide on a patch. It can be applied only if both the version and the code are known to have the bug."""
    parts = {name: part for name in patch.locations if (part := namespace.part_of(name)) is not None}
    if not parts:
        return Decision("not-affected", f"{namespace.name} is installed without the package that this patch changes")
    for part in {id(part): part for part in parts.values()}.values():
        decision = _decide_part(patch, part)
        if decision is not None:
            return decision
    decision = decide_source(patch, parts)
    if decision.verdict != "pending":
        return decision
    lacking = missing_feature(patch.needs)
    return Decision("not-supported", lacking) if lacking else decision


def missing_feature(needs: Iterable[Need], imports: bool = False) -> str:
    """Return the reason if another package lacks one of these features; "" if not, or if that is not known yet.

    Args:
        needs: the features.
        imports: import packages that are not imported yet; otherwise, their features are not checked. Set it only after
            Lightning has been imported.
    """
    for need in needs:
        module_name, _, attribute = need.location.partition(":")
        package = module_name.partition(".")[0]
        if package not in sys.modules and not imports:
            continue
        try:
            found = operator.attrgetter(attribute)(importlib.import_module(module_name))
            exists = not need.parameter or need.parameter in inspect.signature(found).parameters
        except (ImportError, AttributeError, ValueError):
            exists = False
        if not exists:
            version = getattr(sys.modules.get(package), "__version__", "")
            return f"needs {need}, which the installed {f'{package} {version}'.rstrip()} does not have"
    return ""


def targets_in(patch: Patch, namespace: Namespace) -> tuple[Target, ...]:
    """Return the patch's targets that exist in the installed parts of a namespace, by the targets' release ranges."""
    parts = ((target, namespace.part_of(target.location)) for target in patch.targets)
    return tuple(target for target, part in parts if part is not None and _has_target(target, part.version))


@lru_cache(maxsize=None)
def affected_releases(patch: Patch) -> frozenset[str]:
    """Return the known releases in the patch's affected ranges."""
    return frozenset(release for release in fingerprints.known_releases() if in_ranges(release, patch.affected_known))


def _decide_part(patch: Patch, part: Part) -> Optional[Decision]:
    decision = _decide_version(patch, part.distribution, part.version)
    if part.loaded not in ("", part.version):
        loaded = _decide_version(patch, part.distribution, part.loaded)
        if decision is not None and loaded is not None:
            return loaded  # neither has the bug
        return Decision(
            "drifted",
            f"this process has imported {part.distribution} {part.loaded}, and {part.version} was installed later: "
            "restart it (in a notebook, restart the kernel)",
        )
    if decision is None and not part.has_source:
        return Decision(
            "drifted",
            f"{part.distribution} {part.version} has no source files (.py) on disk, which are needed to recognize the "
            "bug: install it with source files, and not in an archive",
        )
    return decision


def _decide_version(patch: Patch, distribution: str, version: str) -> Optional[Decision]:
    try:
        parsed = version_of(version)
    except InvalidVersion:
        return Decision("drifted", f"{distribution} has an invalid version ({version!r})")
    if in_ranges(version, patch.affected):
        return None
    if parsed.public in FORBIDDEN or (parsed.is_prerelease and parsed.base_version == patch.fixed_in):
        # The code must decide, not the version: upstream's master still has the version 2.6.2, and a development
        # version before the fixed release may or may not have the bug.
        return None
    if not patch.affected_known and parsed >= version_of(KNOWN_SINCE):
        return Decision("not-affected", f"{distribution} {version} does not need it: this patch is for 1.5 to 1.7")
    if patch.fixed_in is not None and parsed >= version_of(patch.fixed_in):
        return Decision("fixed-upstream", f"{distribution} {version} has the official fix (since {patch.fixed_in})")
    if patch.fixed_in is None and parsed > version_of(fingerprints.known_releases()[-1]):
        return Decision("not-affected", f"{distribution} {version} is newer than the releases this patch was tested on")
    if is_unknown(version, patch.affected):
        what = "was not checked for this bug, and may have it; the patch is not applied to this release"
        return Decision("not-known", f"{distribution} {version} {what}")
    return Decision("not-affected", f"{distribution} {version} does not have this bug")


def is_unknown(version: str, ranges: tuple[str, ...]) -> bool:
    """True if a version was not checked for a bug.

    Releases 1.8 and 1.9 were checked if the ranges have one of them. They do not have a bug that came after 2.0.0.
    Earlier releases were checked only for bugs that keep them from starting.

    Args:
        version: a version outside of the ranges.
        ranges: the affected versions of the bug.
    """
    try:
        public = public_version(version)
    except InvalidVersion:
        return False
    if any(re.match(r">=1\.[567]\.", text) for text in ranges):
        return False
    is_old = in_ranges("2.0.0", ranges) or any(text.startswith(">=1.") for text in ranges)
    return public < version_of("2" if is_old else KNOWN_SINCE)


def decide_source(patch: Patch, parts: Mapping[str, Part]) -> Decision:
    """Decide on a patch from the source of its locations on disk. The release must be an affected one."""
    version = _releases_of(parts.values())
    carried: set[str] = set()
    shipped: dict[str, Optional[fingerprints.Source]] = {}
    sources: dict[str, fingerprints.Source] = {}
    location = ""
    try:
        parts = {location: part for location, part in parts.items() if _has_location(patch, location, part.version)}
        for location, part in parts.items():
            shipped[location] = fingerprints.shipped_source(part, location)
            if shipped[location] is None:
                carried |= fingerprints.carried_in(part, location)
        if patch.name in carried:
            return Decision("fixed-upstream", f"{version} carries this patch in its source")
        fixes = sorted(carried.intersection(patch.whole.fixed_by)) if carried else []
        if fixes:
            return Decision("fixed-upstream", f"{version} carries {', '.join(fixes)} in its source")
        for location, part in parts.items():
            sources[location] = shipped[location] or fingerprints.source_of(part, location)
    except OSError as error:
        return Decision("drifted", f"the source of {location} cannot be read: {error.strerror or error}")
    for location, source in sources.items():
        if not source.releases:
            what = "is not the code of any known release" if source.exists else "is missing"
            todo = "; another lightning-patches built this fork: build it again" if source.diffs else "; left unchanged"
            return Decision("drifted", f"{location} in {_releases_of([parts[location]])} {what}{todo}")
    fixed = [
        location
        for location, source in sources.items()
        if not any(in_ranges(release, patch.affected) for release in source.releases)
    ]
    if fixed:
        return Decision("fixed-upstream", f"the code of {', '.join(fixed)} in {version} already has the fix")
    return _decide_layers(patch, version, sources) or Decision("pending", "applies when Lightning is imported")


def _has_location(patch: Patch, location: str, version: str) -> bool:
    targets = [target for target in patch.targets if target.location == location]
    return not targets or any(_has_target(target, version) for target in targets)


def _releases_of(parts: Iterable[Part]) -> str:
    return ", ".join(sorted({f"{part.distribution} {part.version}" for part in parts}))


def _decide_layers(patch: Patch, version: str, sources: Mapping[str, fingerprints.Source]) -> Optional[Decision]:
    """Refuse a patch whose replacement could undo the diff of another patch in a fork. A warning only observes."""
    for target in patch.targets if patch.kind != "warning" else ():
        carried = sources[target.location].changed_by if target.location in sources else frozenset()
        others = sorted(carried.difference(patch.below, patch.whole.around)) if carried else []
        if others:
            names = ", ".join(others)
            return Decision(
                "drifted",
                f"{version} carries {names} in {target.location}, which this patch also changes; build a fork with "
                f"both: `lightning-patches fork RELEASE --only default,{patch.name}`",
            )
    return None


def _has_target(target: Target, version: str) -> bool:
    ranges = [f">={target.since}"] if target.since else []
    if target.before:
        ranges.append(f"<{target.before}")
    try:
        return not ranges or in_ranges(version, (",".join(ranges),))
    except InvalidVersion:
        return False
