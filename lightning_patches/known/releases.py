"""The known releases of Lightning, and the versions of other packages that each requires.

The bounds are in ``release_bounds.txt``, which ``scripts/renew`` writes from the releases' metadata.
"""

from __future__ import annotations

import pkgutil
import re
from functools import lru_cache
from typing import Mapping

from lightning_patches.engine import distributions

DATA = "release_bounds.txt"
DISTRIBUTIONS = ("lightning", "pytorch-lightning", "lightning-fabric")
Bounds = Mapping[str, str]
"""Name of a package, or ``python`` -> the specifier in a release's requirements."""


def parse_bounds(text: str) -> dict[str, dict[str, dict[str, str]]]:
    """Parse what ``scripts/_bounds.py`` writes.

    Returns:
        Distribution -> release, oldest first -> its bounds.
    """
    table: dict[str, dict[str, dict[str, str]]] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        release, *changes = line.split(" ")
        distribution, _, version = release.partition("==")
        releases = table.setdefault(distribution, {})
        bounds = dict(releases[list(releases)[-1]]) if releases else {}
        for change in changes:
            if change.startswith("-"):
                del bounds[change[1:]]
            else:
                name, spec = split(change)
                bounds[name] = spec
        releases[version] = bounds
    return table


def split(text: str) -> tuple[str, str]:
    """Split a requirement into its name and its specifier."""
    found = re.match(r"[\w.-]+", text)
    assert found is not None, text
    return found[0], text[found.end() :]


@lru_cache(maxsize=None)
def _table() -> dict[str, dict[str, dict[str, str]]]:
    return parse_bounds((pkgutil.get_data(__package__, DATA) or b"").decode("ascii"))


def bounds(distribution: str, version: str) -> Bounds:
    """Return the requirements of a release, without extras; empty for an unknown release."""
    return _table().get(distribution, {}).get(version, {})


@lru_cache(maxsize=None)
def bounded_packages() -> frozenset[str]:
    """Return all packages for which a release has a bound."""
    return frozenset(name for releases in _table().values() for found in releases.values() for name in found)


def known(distribution: str) -> list[str]:
    """Return the known releases of a distribution, oldest first, without the compromised ones."""
    return list(_table()[distribution])


def is_known(distribution: str, version: str) -> bool:
    """True if this release was checked for the known bugs. Local labels are ignored."""
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion, Version

    try:
        public = Version(version).public
    except InvalidVersion:
        return False
    return public in distributions.FORBIDDEN or public in known(str(canonicalize_name(distribution)))
