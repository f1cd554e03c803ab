"""The patched fork: an official wheel with our diffs in it, as a wheel of its own or as a directory to import from."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Iterator, Optional

import _diffs
import _releases

PROVENANCE = "lightning_patches.json"
"""In the fork's dist-info: what it was made from and which diffs are in it."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Fork:
    """What a fork consists of, before it is written anywhere.

    Args:
        distribution: ``"lightning"`` or ``"pytorch-lightning"``.
        base: the release that it was made from, ``"2.2.5"``.
        version: its own, ``"2.2.5+patches.1"``.
        diffs: what was applied, in order.
        renamed: directory of its metadata in the official wheel, and in the fork.
        changed: new content of the files that differ from the official wheel or are new, by path in the fork.
    """

    distribution: str
    base: str
    version: str
    diffs: tuple[_diffs.Diff, ...]
    renamed: tuple[str, str]
    changed: dict[str, bytes]

    @property
    def wheel_name(self) -> str:
        return f"{self.distribution.replace('-', '_')}-{self.version}-py3-none-any.whl"

    def path_of(self, path: str) -> str:
        """Where a file of the official wheel is in the fork."""
        old, new = self.renamed
        return new + path[len(old) :] if path.startswith(f"{old}/") else path


def make(distribution: str, base: str, names: Optional[Iterable[str]] = None) -> Fork:
    """Work out a fork.

    Args:
        distribution: ``"lightning"`` or ``"pytorch-lightning"``.
        base: a locked release.
        names: patches to apply, where they have a diff for this release; ``None`` for all.

    Raises:
        LookupError: not a locked release, or there is no diff for a name.
        DiffError: a diff does not apply.
        ValueError: the official wheel is not laid out as expected.
    """
    names = None if names is None else sorted(set(names))
    everything = _diffs.series()
    diffs = _diffs.selected(base, names, everything)
    with zipfile.ZipFile(_releases.wheel(distribution, base)) as archive:
        paths = [name for name in archive.namelist() if not name.endswith("/")]
        present = set(paths)

        def reader(path: str) -> Optional[str]:
            return archive.read(path).decode("utf-8") if path in present else None

        changed = {
            path: text.encode()
            for path, text in _diffs.apply_all(diffs, _releases.NAMESPACES[distribution], reader).items()
        }
        version = local_version(base, names)
        stem = distribution.replace("-", "_")
        renamed = f"{stem}-{base}.dist-info", f"{stem}-{version}.dist-info"
        fork = Fork(distribution, base, version, tuple(diffs), renamed, changed)
        infos = [path for path in paths if re.fullmatch(r"[^/]+/version\.info", path)]
        if not infos or f"{renamed[0]}/RECORD" not in present:
            raise ValueError(f"{distribution} {base}: no version.info or no RECORD where they were expected")
        for path in infos:
            if archive.read(path).decode().strip() != base:
                raise ValueError(f"{distribution} {base}: {path} says otherwise")
            changed[path] = f"{version}\n".encode()
        metadata = archive.read(f"{renamed[0]}/METADATA").decode("utf-8")
        changed[f"{renamed[1]}/METADATA"] = _with_version(metadata, base, version).encode()
        changed[f"{renamed[1]}/{PROVENANCE}"] = _provenance(fork)
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


def local_version(base: str, names: Optional[list[str]] = None) -> str:
    """``2.2.5+patches.1``; with a selection of patches ``2.2.5+patches.1.only.8ab3c07d``, which tells them apart."""
    number = f"{base}+patches.{_diffs.NUMBER}"
    if names is None:
        return number
    return f"{number}.only.{hashlib.sha256(','.join(names).encode()).hexdigest()[:8]}"


def write_wheel(fork: Fork, directory: Path) -> Path:
    """Write the fork as a wheel: the same bytes wherever and whenever it is written.

    Files are stored, not compressed: what a compressor makes of them depends on the zlib at hand.
    """
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / fork.wheel_name
    with zipfile.ZipFile(_releases.wheel(fork.distribution, fork.base)) as official:
        originals = {fork.path_of(info.filename): info for info in official.infolist() if not info.is_dir()}
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
            try:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                    for path in _order({*originals, *fork.changed}):
                        entry = zipfile.ZipInfo(path, _EPOCH)
                        entry.create_system = 3
                        mode = originals[path].external_attr >> 16 if path in originals else 0
                        entry.external_attr = (0o100755 if mode & 0o111 else 0o100644) << 16
                        content = fork.changed.get(path)
                        archive.writestr(entry, official.read(originals[path]) if content is None else content)
                os.chmod(file.name, 0o644)
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise
    return target


def directory_of(distribution: str, base: str, names: Optional[Iterable[str]] = None) -> Path:
    """A directory to put on PYTHONPATH that holds the fork as pip would install it; made once, then kept.

    Files that the diffs leave alone are hard links to those of the unpacked release, their compiled form included.
    """
    selection = None if names is None else sorted(set(names))
    diffs = _diffs.selected(base, selection)
    key = hashlib.sha256(f"{local_version(base, selection)} {_diffs.series_digest(diffs)}".encode()).hexdigest()[:12]
    target = _releases.cache_dir() / "forks" / f"{distribution}-{base}-{key}"
    release = _releases.unpacked(distribution, base)
    with _releases.locked_directory(target.parent):
        if target.exists():
            return target
        fork = make(distribution, base, selection)
        temporary = Path(tempfile.mkdtemp(dir=target.parent))
        try:
            _link(release, temporary, fork)
            os.replace(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return target


def _link(release: Path, target: Path, fork: Fork) -> None:
    modules = {path.rpartition("/")[2].removesuffix(".py") for path in fork.changed if path.endswith(".py")}
    for source in _files(release):
        path = fork.path_of(source.relative_to(release).as_posix())
        if path in fork.changed or (source.suffix == ".pyc" and source.name.partition(".")[0] in modules):
            continue
        if source.parent.name == "__pycache__" and source.suffix != ".pyc":
            continue  # being written by another process
        destination = target / path
        destination.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, destination)
        except FileNotFoundError:
            if source.suffix != ".pyc":  # a compiled file may have been replaced meanwhile
                raise
    for path, content in fork.changed.items():
        destination = target / path
        destination.parent.mkdir(parents=True, exist_ok=True)
        destination.write_bytes(content)


def _files(directory: Path) -> Iterator[Path]:
    for root, _, names in os.walk(directory):
        for name in names:
            yield Path(root) / name


def _order(paths: Iterable[str]) -> list[str]:
    """Sorted, the metadata last and RECORD at the very end, as the wheel specification recommends."""
    return sorted(paths, key=lambda path: (".dist-info/" in path, path.endswith("/RECORD"), path))


def _original(fork: Fork, path: str) -> str:
    old, new = fork.renamed
    return old + path[len(new) :] if path.startswith(f"{new}/") else path


def _with_version(metadata: str, base: str, version: str) -> str:
    head, separator, body = metadata.partition("\n\n")
    replaced, count = re.subn(rf"^Version: {re.escape(base)}$", f"Version: {version}", head, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"METADATA says {count} times that this is {base}")
    return replaced + separator + body


def _provenance(fork: Fork) -> bytes:
    release = _releases.find(fork.distribution, fork.base)
    facts = {
        "made from": {"wheel": release.wheel_name, "sha256": release.sha256},
        "series": _diffs.NUMBER,
        "diffs": [{"file": diff.path.name, "sha256": diff.digest} for diff in fork.diffs],
    }
    return (json.dumps(facts, indent=1) + "\n").encode()
