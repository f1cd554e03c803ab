"""Directories with the patched fork of a release, created once."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Iterable, Iterator, Optional

from lightning_patches.fork import diffs as _diffs
from lightning_patches.fork import wheel as _fork
from tests.support import variants  # noqa: F401  puts scripts/ on the path

import _releases  # isort: skip


def directory_of(distribution: str, base: str, names: Optional[Iterable[str]] = None) -> Path:
    """Return a directory for PYTHONPATH with the fork as pip would install it. It is created once and kept.

    Files without changes are hard links to the unpacked release, including compiled files.
    """
    selection = None if names is None else sorted(set(names))
    diffs = _diffs.selected(base, selection)
    contents = " ".join([_fork.local_version(base, selection), *(diff.digest for diff in diffs)])
    key = hashlib.sha256(contents.encode()).hexdigest()[:12]
    target = _releases.cache_dir() / "forks" / f"{distribution}-{base}-{key}"
    release = _releases.unpacked(distribution, base)
    with _releases.locked_directory(target.parent):
        if target.exists():
            return target
        fork = _fork.make(_releases.wheel(distribution, base), selection)
        temporary = Path(tempfile.mkdtemp(dir=target.parent))
        try:
            _link(release, temporary, fork)
            os.replace(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return target


def _link(release: Path, target: Path, fork: _fork.Fork) -> None:
    modules = {path.rpartition("/")[2].removesuffix(".py") for path in fork.changed if path.endswith(".py")}
    for source in _files(release):
        path = fork.path_of(source.relative_to(release).as_posix())
        if path in fork.changed or (source.suffix == ".pyc" and source.name.partition(".")[0] in modules):
            continue
        if source.parent.name == "__pycache__" and source.suffix != ".pyc":
            continue  # another process is writing it
        destination = target / path
        destination.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, destination)
        except FileNotFoundError:
            if source.suffix != ".pyc":  # a compiled file may have been replaced
                raise
    for path, content in fork.changed.items():
        destination = target / path
        destination.parent.mkdir(parents=True, exist_ok=True)
        destination.write_bytes(content)


def _files(directory: Path) -> Iterator[Path]:
    for root, _, names in os.walk(directory):
        for name in names:
            yield Path(root) / name
