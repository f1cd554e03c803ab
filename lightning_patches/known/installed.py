"""The Lightning distributions of this environment, and releases among them that must not be imported."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass, field
from typing import Optional

from lightning_patches import system
from lightning_patches.engine import distributions
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.known.unpatched import ADVICE, ADVISORY, UNPATCHED


@dataclass(frozen=True)
class BrokenImport:
    """The reason why the import of an installed Lightning fails, and advice."""

    why: str
    do: str


@dataclass
class Installed:
    """One distribution of Lightning in this environment.

    Args:
        distribution: ``"lightning"``, ``"pytorch-lightning"`` or ``"lightning-fabric"``.
        version: version of its code, or of its metadata if there is no code.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        packages: its packages and their directories.
        forbidden: True for a release that was compromised on PyPI.
        note: a warning for the user, or "".
        broken: the reason why its import fails here; ``None`` if no reason is known.
    """

    distribution: str
    version: str
    namespace: str
    packages: dict[str, str] = field(default_factory=dict)
    forbidden: bool = False
    note: str = ""
    broken: Optional[BrokenImport] = None


def find_installed() -> list[Installed]:
    """Return the Lightning distributions of this environment, from the files on disk.

    A forbidden release is also found if only its metadata is installed.
    """
    found: dict[str, Installed] = {}
    for name in distributions.PARTS:
        namespace = distributions.find(name)
        for part in namespace.parts.values() if namespace is not None else ():
            entry = Installed(part.distribution, part.version, name)
            found.setdefault(part.distribution, entry).packages[part.package] = part.directory
    for distribution, namespace_name in _NAMES.items():
        version = system.installed_version(distribution)
        if version in distributions.FORBIDDEN and distribution not in found:
            found[distribution] = Installed(distribution, version, namespace_name)
        if distribution in found:
            _check_forbidden(found[distribution], version)
            found[distribution].broken = _find_broken_import(found[distribution])
    return list(found.values())


_NAMES = {"lightning": "lightning", "pytorch-lightning": "pytorch_lightning", "lightning-fabric": "pytorch_lightning"}


def _check_forbidden(installed: Installed, metadata_version: str) -> None:
    hit = sorted({installed.version, metadata_version} & distributions.FORBIDDEN)
    if not hit:
        return
    if _from_source(installed.distribution):
        # Upstream's master still has the version 2.6.2.
        installed.note = f"built from source; the release {hit[0]} on PyPI was compromised ({ADVISORY})"
        return
    installed.forbidden = True
    installed.note = (
        f"{installed.distribution} {hit[0]} from PyPI was compromised and runs hostile code when it is imported "
        f"({ADVISORY}). {ADVICE[0].upper()}{ADVICE[1:]}"
    )


def _find_broken_import(installed: Installed) -> Optional[BrokenImport]:
    """Find a bug that makes the import fail with the installed versions of other packages."""
    from packaging.requirements import Requirement
    from packaging.version import InvalidVersion

    for bug in UNPATCHED:
        if not bug.only_with or installed.distribution not in bug.distributions:
            continue
        needed = [Requirement(text) for text in bug.only_with]
        versions = {one.name: system.installed_version(one.name) for one in needed}
        try:
            applies = in_ranges(installed.version, bug.affected) and all(
                versions[one.name] and one.specifier.contains(versions[one.name], prereleases=True) for one in needed
            )
        except InvalidVersion:
            continue
        if applies:
            others = ", ".join(f"{name} {version}" for name, version in versions.items())
            error = bug.impact.error
            return BrokenImport(f"`import {installed.namespace}` fails with {others}: {error}", bug.advice)
    return None


def _from_source(distribution: str) -> bool:
    """True if pip built the distribution from a repository or directory, for which it writes ``direct_url.json``."""
    try:
        origin = importlib.metadata.distribution(distribution).read_text("direct_url.json") or ""
    except (importlib.metadata.PackageNotFoundError, OSError, UnicodeDecodeError):
        return False
    return '"vcs_info"' in origin or '"dir_info"' in origin
