"""Build a wheel from an official wheel and our diffs. Two builds give the same bytes."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import pkgutil
import re
import tempfile
import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Iterable, Optional

from lightning_patches import system
from lightning_patches.fork import diffs as _diffs

DISTRIBUTIONS = ("lightning", "pytorch-lightning")
PROVENANCE = "lightning_patches.json"
"""File in the fork's dist-info that names the official wheel and the applied diffs."""
MAX_WHEEL = 16 << 20
"""Largest official wheel that is read, in bytes. The largest one of a release has 2 MB."""
MAX_UNPACKED = 64 << 20
"""Largest total size of the files in a wheel, in bytes. Those of the largest release have 7 MB."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Fork:
    """The content of a fork, before it is written.

    Args:
        official: name of the official wheel.
        source: content of that wheel.
        distribution: ``"lightning"`` or ``"pytorch-lightning"``.
        base: the official release, ``"2.2.5"``.
        version: version of the fork, ``"2.2.5+patches.N"``.
        diffs: the applied diffs, in order.
        renamed: names of the metadata directory in the official wheel and in the fork.
        changed: new content of the files that differ from the official wheel or are new, by path in the fork.
    """

    official: str
    source: bytes = field(repr=False)
    distribution: str
    base: str
    version: str
    diffs: tuple[_diffs.Diff, ...]
    renamed: tuple[str, str]
    changed: dict[str, bytes]

    @property
    def wheel_name(self) -> str:
        return f"{self.distribution.replace('-', '_')}-{self.version}-py3-none-any.whl"

    @cached_property
    def content(self) -> bytes:
        """The bytes of the fork's wheel, which do not depend on the machine or the time.

        Files are not compressed, since the output of a compressor depends on its version.
        """
        written = io.BytesIO()
        with _open(self.source) as official, zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
            originals = {self.path_of(info.filename): info for info in official.infolist() if not info.is_dir()}
            for path in _order({*originals, *self.changed}):
                entry = zipfile.ZipInfo(path, _EPOCH)
                entry.create_system = 3
                mode = originals[path].external_attr >> 16 if path in originals else 0
                entry.external_attr = (0o100755 if mode & 0o111 else 0o100644) << 16
                content = self.changed.get(path)
                archive.writestr(entry, official.read(originals[path]) if content is None else content)
        return written.getvalue()

    def path_of(self, path: str) -> str:
        """Return the path in the fork of a file of the official wheel."""
        old, new = self.renamed
        return new + path[len(old) :] if path.startswith(f"{old}/") else path


def locked(distribution: str, version: str) -> str:
    """Return the sha256 of a release's official wheel.

    Raises:
        LookupError: the release is unknown, is older than 1.8, or was compromised.
    """
    text = (pkgutil.get_data(__package__, "releases.lock") or b"").decode("ascii")
    found = re.search(rf"^{re.escape(f'{distribution}=={version}')} (\S+)$", text, re.MULTILINE)
    if found is None or version.startswith(("1.5.", "1.6.", "1.7.")):
        raise LookupError(f"{distribution} {version} is not a release since 1.8 that this lightning-patches knows")
    if found[1] == "forbidden":
        raise LookupError(f"{distribution} {version} was compromised: use any other release")
    return found[1].partition("sha256:")[2]


def release_of(official: Path) -> tuple[str, str]:
    """Return distribution and version of an official wheel from its file name: ``("lightning", "2.2.5")``.

    Raises:
        LookupError: the file name is not that of an official wheel.
    """
    found = re.fullmatch(r"(lightning|pytorch_lightning)-([^-+]+)-py3-none-any\.whl", official.name)
    if found is None:
        raise LookupError(f"{official.name} is not the file name of a wheel of {' or '.join(DISTRIBUTIONS)} on PyPI")
    return found[1].replace("_", "-"), found[2]


def make(official: Path, names: Optional[Iterable[str]] = None) -> Fork:
    """Create a fork in memory.

    Args:
        official: the wheel of a release, with the same file name as on PyPI.
        names: patches to apply if they have a diff for this release; ``None`` for all.

    Raises:
        LookupError: the file cannot be read, or is not the official wheel of a known release; or a patch has no diff.
        DiffError: a diff does not apply.
        ValueError: the official wheel does not have the expected files.
    """
    names = None if names is None else sorted(set(names))
    distribution, base = release_of(official)
    expected = locked(distribution, base)
    try:
        source = system.read_regular(str(official), MAX_WHEEL)
    except OSError as error:
        raise LookupError(f"{official} cannot be read: {error.strerror or error}") from None
    digest = hashlib.sha256(source).hexdigest()
    if digest != expected:
        raise LookupError(f"{official} is not the wheel on PyPI: its sha256 is {digest}, and PyPI's is {expected}")
    diffs = _diffs.selected(base, names)
    with _open(source) as archive:
        paths = [name for name in archive.namelist() if not name.endswith("/")]
        present = set(paths)

        def reader(path: str) -> Optional[str]:
            return archive.read(path).decode("utf-8") if path in present else None

        changed = {
            path: text.encode()
            for path, text in _diffs.apply_all(diffs, distribution.replace("-", "_"), reader).items()
        }
        version = local_version(base, names)
        stem = distribution.replace("-", "_")
        renamed = f"{stem}-{base}.dist-info", f"{stem}-{version}.dist-info"
        fork = Fork(official.name, source, distribution, base, version, tuple(diffs), renamed, changed)
        name = "__version__.py" if base.startswith("1.8.") else "version.info"
        version_files = [path for path in paths if path.partition("/")[2] == name]
        if not version_files or f"{renamed[0]}/RECORD" not in present:
            raise ValueError(f"{distribution} {base}: the wheel has no {name} or no RECORD")
        for path in version_files:
            text = archive.read(path).decode().strip()
            if text not in (base, f'version = "{base}"'):
                raise ValueError(f"{distribution} {base}: {path} states another version")
            changed[path] = f"{text.replace(base, version)}\n".encode()
        metadata = archive.read(f"{renamed[0]}/METADATA").decode("utf-8")
        changed[f"{renamed[1]}/METADATA"] = _corrected(metadata, base, version).encode()
        changed[f"{renamed[1]}/{PROVENANCE}"] = _provenance(fork, digest)
        rows = []
        for path in _order({*map(fork.path_of, paths), *changed}):
            if path.endswith("/RECORD"):
                rows.append(f"{path},,")
                continue
            content = changed[path] if path in changed else archive.read(_original(fork, path))
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{path},sha256={digest},{len(content)}")
        changed[f"{renamed[1]}/RECORD"] = ("\n".join(rows) + "\n").encode()
    return fork


def local_version(base: str, names: Optional[Iterable[str]] = None) -> str:
    """Return the version of a fork.

    It is ``2.2.5+patches.N`` with the default set, and ``2.2.5+patches.N.all`` with all patches. The version of another
    selection has a digest of it, ``2.2.5+patches.N.only.8ab3c07d``.
    """
    number = f"{base}+patches.{_diffs.NUMBER}"
    if names is None:
        return f"{number}.all"
    if set(names) == set(default_set()):
        return number
    return f"{number}.only.{hashlib.sha256(','.join(sorted(names)).encode()).hexdigest()[:8]}"


def carried_by(version: str) -> Optional[frozenset[str]]:
    """Return the patches in a fork by its version, ``"2.2.5+patches.N"``; ``None`` if the version does not show
    them."""
    base = version.partition("+")[0]
    for names in (default_set(), None):
        if version == local_version(base, names):
            return frozenset(diff.name for diff in _diffs.selected(base, names))
    return None


def default_set() -> list[str]:
    """Return the names of the default patches that have a diff."""
    return [diff.name for diff in _diffs.series() if _diffs.record(diff.name).default]


def write_wheel(fork: Fork, directory: Path) -> Path:
    """Write the fork's wheel into a directory, atomically."""
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / fork.wheel_name
    with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
        try:
            file.write(fork.content)
            file.flush()
            os.chmod(file.name, 0o644)
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise
    return target


def _open(source: bytes) -> zipfile.ZipFile:
    """Open an official wheel from memory.

    Raises:
        ValueError: the total size of the files is larger than :data:`MAX_UNPACKED`.
    """
    archive = zipfile.ZipFile(io.BytesIO(source))
    if sum(info.file_size for info in archive.infolist()) > MAX_UNPACKED:
        raise ValueError(f"the files in the wheel have more than {system.in_bytes(MAX_UNPACKED)}")
    return archive


def _order(paths: Iterable[str]) -> list[str]:
    """Sort paths, with the metadata last and RECORD at the end, as the wheel specification recommends."""
    return sorted(paths, key=lambda path: (".dist-info/" in path, path.endswith("/RECORD"), path))


def _original(fork: Fork, path: str) -> str:
    old, new = fork.renamed
    return old + path[len(new) :] if path.startswith(f"{new}/") else path


def _corrected(metadata: str, base: str, version: str) -> str:
    """Return the metadata with the version of the fork, and with valid bounds."""
    head, separator, body = metadata.partition("\n\n")
    replaced, count = re.subn(rf"^Version: {re.escape(base)}$", f"Version: {version}", head, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"METADATA has {count} lines with the version {base}, not 1")
    return with_valid_bounds(replaced) + separator + body


def with_valid_bounds(requirements: str) -> str:
    """Replace ``>=1.9.*`` by ``>=1.9``, which means the same: pip 24.1 and later refuse the first form."""
    return re.sub(r"([<>]=?[\d.]+)\.\*", r"\1", requirements)


def _provenance(fork: Fork, digest: str) -> bytes:
    facts = {
        "made from": {"wheel": fork.official, "sha256": digest},
        "series": _diffs.NUMBER,
        "diffs": [{"file": diff.path.name, "sha256": diff.digest} for diff in fork.diffs],
    }
    return (json.dumps(facts, indent=1) + "\n").encode()
