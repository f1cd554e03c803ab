"""Lightning's releases on PyPI: locked, fetched, checked, cached. Used by the scripts here and by the tests."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Callable, Iterator, Optional

cache = lru_cache(maxsize=None)
"""As in ``functools`` from Python 3.9 on. Some scenarios import this module with Python 3.8."""
ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "lightning_patches" / "fork" / "releases.lock"
DISTRIBUTIONS = ("lightning", "pytorch-lightning")
QUIET = ("-qq", "--disable-pip-version-check")
"""pip prints errors only."""
PACKAGES_OF_1X = (
    "tensorboard==2.21.0",
    "tensorboardX==2.6.4",
    "pyDeprecate==0.3.2",
    "absl-py==2.5.1",
    "protobuf==7.36.2",
)
OLDER = ("1.5.", "1.6.", "1.7.")
NAMESPACES = {"lightning": "lightning", "pytorch-lightning": "pytorch_lightning"}


@dataclass(frozen=True)
class Release:
    """One line of ``releases.lock``; ``sha256`` is empty for a forbidden release."""

    distribution: str
    version: str
    sha256: str

    @property
    def forbidden(self) -> bool:
        return not self.sha256

    @property
    def wheel_name(self) -> str:
        return f"{self.distribution.replace('-', '_')}-{self.version}-py3-none-any.whl"


def cache_dir() -> Path:
    """Return the directory of wheels and unpacked releases, which ``LIGHTNING_PATCHES_TEST_CACHE`` can set."""
    default = Path.home() / ".cache" / "lightning-patches-tests"
    path = Path(os.environ.get("LIGHTNING_PATCHES_TEST_CACHE", default)).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


def locked() -> list[Release]:
    """All releases of the lock file, oldest first."""
    releases = []
    for line in LOCK.read_text().splitlines():
        if line and not line.startswith("#"):
            requirement, _, rest = line.partition(" ")
            distribution, _, version = requirement.partition("==")
            releases.append(Release(distribution, version, rest.removeprefix("sha256:") if "sha256:" in rest else ""))
    return releases


def versions(distribution: str = "lightning") -> list[str]:
    """Versions of a distribution since 1.8 that may be downloaded, oldest first."""
    found = [r.version for r in locked() if r.distribution == distribution and not r.forbidden]
    return [version for version in found if not version.startswith(OLDER)]


def older_versions() -> list[str]:
    """Versions 1.5 to 1.7 of ``pytorch-lightning``, oldest first."""
    return [r.version for r in locked() if r.version.startswith(OLDER)]


def find(distribution: str, version: str) -> Release:
    """The locked release.

    Raises:
        LookupError: it is not in the lock file, or it is forbidden.
    """
    for release in locked():
        if (release.distribution, release.version) == (distribution, version):
            if release.forbidden:
                raise LookupError(f"{distribution} {version} was compromised and is never downloaded (see {LOCK.name})")
            return release
    raise LookupError(f"{distribution} {version} is not in {LOCK.name}")


def wheel(distribution: str, version: str) -> Path:
    """The release's wheel, downloaded once and checked against the lock each time it is downloaded.

    Raises:
        LookupError: not a locked release.
        ValueError: the file does not have the locked sha256; it is deleted.
    """
    release = find(distribution, version)
    path = cache_dir() / "wheels" / release.wheel_name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as temporary:
            download(distribution, version, Path(temporary))
            fetched = Path(temporary) / release.wheel_name
            digest = hashlib.sha256(fetched.read_bytes()).hexdigest()
            if digest != release.sha256:
                raise ValueError(f"{release.wheel_name}: sha256 {digest} is not the locked {release.sha256}")
            os.replace(fetched, path)
    return path


def download(distribution: str, version: str, directory: Path) -> None:
    """Download the release's wheel with pip, started in the empty ``directory``: `-m` imports from where it starts."""
    command = [sys.executable, "-m", "pip", "download", *QUIET, "--no-deps", "--only-binary=:all:"]
    # pip 24.1 and later refuse the metadata of most releases up to 1.8.3, such as "torch (>=1.9.*)".
    older = {"PYTHONPATH": str(beside("pip-24.0", "pip==24.0"))} if version.startswith((*OLDER, "1.8.")) else {}
    requirement = f"{distribution}=={version}"
    subprocess.run([*command, "--dest", ".", requirement], cwd=directory, env={**os.environ, **older}, check=True)


@cache
def on_the_index(distribution: str) -> tuple[str, ...]:
    """All releases that pip lists, newest first: those of PyPI that are not yanked.

    Raises:
        LookupError: pip lists none.
    """
    command = [sys.executable, "-m", "pip", "index", "versions", distribution]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    available = re.search(r"Available versions: (.*)", listing)
    if available is None:
        raise LookupError(f"pip lists no versions of {distribution}")
    return tuple(version.strip() for version in available[1].split(","))


def unpacked(distribution: str, version: str) -> Path:
    """A directory to put on PYTHONPATH that holds the release as pip would install it, without dependencies."""
    target = cache_dir() / "releases" / f"{distribution}-{version}"
    with locked_directory(target.parent):
        if not target.exists():
            unpack(wheel(distribution, version), target)
    return target


def beside(name: str, *pinned: str) -> Path:
    """A directory to put on the path that holds these packages, without their dependencies; installed once."""
    target = cache_dir() / "beside" / name
    with locked_directory(target.parent):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
                made = Path(temporary, "made")
                options = [*QUIET, "--no-deps", "--target", made.name]
                command = [sys.executable, "-m", "pip", "install", *options, *pinned]
                subprocess.run(command, cwd=temporary, check=True)
                made.rename(target)
    return target


def beside_1x() -> Path:
    """A directory to put on the path that holds the packages that Lightning 1.5 to 1.8 needs, and no later release."""
    return beside("packages-of-1x", *PACKAGES_OF_1X)


def unpack(wheel_path: Path, target: Path) -> None:
    """Unzip a pure wheel, all or nothing."""
    temporary = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        with zipfile.ZipFile(wheel_path) as archive:
            archive.extractall(temporary)
        os.replace(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextmanager
def locked_directory(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def reader(distribution: str, version: str) -> Callable[[str], Optional[str]]:
    """Return a function that reads a file of a locked release by its path in the wheel; ``None`` if it is missing."""
    archive = zipfile.ZipFile(wheel(distribution, version))
    names = set(archive.namelist())

    @cache
    def read(path: str) -> Optional[str]:
        return archive.read(path).decode() if path in names else None

    return read
