"""``lightning_patches/known/release_bounds.txt``, from the metadata of all releases on PyPI."""

from __future__ import annotations

import re
import tempfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

import _releases

from lightning_patches.engine import fingerprints
from lightning_patches.fork.wheel import with_valid_bounds
from lightning_patches.known import releases as known_releases

DATA = Path(known_releases.__file__).with_name(known_releases.DATA)
FIRST = {"lightning": "1.8.0", "pytorch-lightning": "1.5.0", "lightning-fabric": "1.9.0"}
"""Distribution -> its first release that we know."""
HEAD = """\
# What the releases of Lightning require, from their metadata. Written by scripts/renew.
# A line has the changes since the line before it: new bounds, and "-" before what is no longer required. Packages that
# only an extra or a marker asks for are left out. An installer takes a yanked release only for `==`.
"""


def text(afresh: bool = False) -> str:
    """The table of every known release, oldest first.

    Args:
        afresh: read the locked releases again. Otherwise only those that the table lacks: releases do not change.
    """
    known = known_releases.parse_bounds(DATA.read_text(encoding="utf-8") if DATA.exists() else "")
    locked = {(release.distribution, release.version) for release in _releases.locked()}
    releases = [*fingerprints.older_releases(), *fingerprints.known_releases()]
    lines = []
    for distribution, first in FIRST.items():
        before: dict[str, str] = {}
        for version in releases[releases.index(first) :]:
            bounds = known.get(distribution, {}).get(version)
            if bounds is None or (afresh and (distribution, version) in locked):
                bounds = of_release(distribution, version)
            changes = [f"{name}{spec}" for name, spec in sorted(bounds.items()) if before.get(name) != spec]
            changes += [f"-{name}" for name in sorted(before) if name not in bounds]
            lines.append(" ".join([f"{distribution}=={version}", *changes]))
            before = bounds
    return HEAD + "\n".join(lines) + "\n"


def of_release(distribution: str, version: str) -> dict[str, str]:
    """The bounds of a release. ``yanked`` is among them if it is yanked."""
    if (distribution, version) in {(release.distribution, release.version) for release in _releases.locked()}:
        bounds = read(_releases.wheel(distribution, version))
    else:
        with tempfile.TemporaryDirectory() as directory:
            _releases.download(distribution, version, Path(directory))
            (wheel,) = Path(directory).glob("*.whl")
            bounds = read(wheel)
    return {**bounds, "yanked": ""} if version not in _releases.on_the_index(distribution) else bounds


def read(wheel: Path) -> dict[str, str]:
    """The bounds that a wheel's metadata has."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = BytesParser().parsebytes(archive.read(name))
    bounds = {"python": metadata["Requires-Python"]}
    for requirement in metadata.get_all("Requires-Dist", ()):
        found = re.fullmatch(r"([\w.-]+)(?:\[[^]]*\])?\s*\(?([^;()]*)\)?", requirement)
        if found:  # without a marker
            bounds[re.sub(r"[-_.]+", "-", found[1]).lower()] = found[2]
    clean = {name: with_valid_bounds(spec.replace(" ", "")) for name, spec in bounds.items()}
    return {name: ",".join(sorted(spec.split(","), reverse=True)) for name, spec in clean.items()}
