"""Build a patched fork of a release: the official wheel of Lightning with the diffs of the default patches.

It is for images and frozen environments, and needs no import hook.

  lightning-patches fork 2.2.5
  lightning-patches fork pytorch-lightning==2.2.5
  lightning-patches fork 2.2.5 --only 19813,lr-finder-applies-lr
  lightning-patches fork 2.2.5 --only default,loader-sampler-kept
  lightning-patches fork lightning-2.2.5-py3-none-any.whl

pip downloads the official wheel. Without a network, name the file of the wheel from PyPI, which is not changed. Two
builds give the same bytes.

exit status: 0 if the fork was built, else 2.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import subprocess
import tempfile
from pathlib import Path
from typing import Optional

from packaging.version import InvalidVersion, Version

from lightning_patches import system
from lightning_patches.cli import _arguments, _output
from lightning_patches.cli._exit_status import OK, UsageError
from lightning_patches.engine.hunks import DiffError
from lightning_patches.fork import wheel
from lightning_patches.known import releases
from lightning_patches.known.installed import find_installed

MAX_NAMES = 10
"""Most patches that are named."""
HELP = "build a wheel of Lightning with the patches in it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "release",
        metavar="RELEASE",
        help="2.2.5 (of the distribution installed here), pytorch-lightning==2.2.5, or the file of an official wheel",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--only",
        metavar="NAME|NUMBER,...",
        help="only these patches, by name, issue or pull request; `default` is the default set",
    )
    which.add_argument("--all", action="store_true", help="also the opt-in patches")
    parser.add_argument("--output", type=Path, default=Path("dist"), metavar="DIR", help="for the wheel (dist/)")


def run(args: argparse.Namespace) -> int:
    keys = [key.strip() for key in args.only.split(",")] if args.only is not None else ["default"]
    requested = {key: _arguments.find_patches(key) for key in keys if key != "default"}
    try:
        names: Optional[list[str]] = None
        if not args.all:
            names = wheel.default_set() if "default" in keys else []
            names += [patch.name for found in requested.values() for patch in found]
        with tempfile.TemporaryDirectory() as temporary:
            fork = wheel.make(_official(args.release, Path(temporary)), names)
            carried = {diff.name for diff in fork.diffs}
            absent = [key for key, patches in requested.items() if carried.isdisjoint(patch.name for patch in patches)]
            if absent or not carried:
                lacks = f"the bug of {', '.join(absent)}" if absent else "a bug that a patch fixes"
                raise LookupError(f"{fork.distribution} {fork.base} does not have {lacks}")
            path = wheel.write_wheel(fork, args.output)
    except (LookupError, OSError, ValueError, DiffError) as error:
        raise UsageError(f"no wheel was built: {error}.") from error
    listed = f": {', '.join(diff.name for diff in fork.diffs)}" if len(fork.diffs) <= MAX_NAMES else ""
    count = "1 patch is" if len(fork.diffs) == 1 else f"{len(fork.diffs)} patches are"
    _output.write(_output.paragraph(f"{count} in the wheel{listed}."))
    _output.write(f"{path}\nsha256:{hashlib.sha256(fork.content).hexdigest()}\n")
    package = fork.distribution.replace("-", "_")
    rows = (
        ("install it", f"pip install --no-deps {path}"),
        ("is it in use?", f'python -c "import {package}; print({package}.__version__)"   # {fork.version}'),
        ("go back", f"pip install --no-deps --force-reinstall {fork.distribution}=={fork.base}"),
    )
    _output.write("\n".join(f"{what + ':':15}{command}" for what, command in rows))
    return OK


def _official(release: str, directory: Path) -> Path:
    """Return the official wheel: the given file, or one downloaded into ``directory``."""
    if release.endswith(".whl"):
        return Path(release)
    distribution, equals, version = release.replace("_", "-").partition("==")
    if not equals:
        distribution, version = "", release
    distribution = distribution.strip() or _installed()
    version = _release(distribution, version.strip())
    wheel.locked(distribution, version)
    pinned = f"{distribution}=={version}"
    otherwise = (
        f"Run `pip download --no-deps {pinned}` on a machine with a network, and then "
        f"`lightning-patches fork {distribution.replace('-', '_')}-{version}-py3-none-any.whl`"
    )
    if importlib.util.find_spec("pip") is None:
        raise LookupError(f"there is no pip in this environment to download {pinned} with. {otherwise}")
    pip = system.python_command("-m", "pip", "download", "--quiet", "--disable-pip-version-check")
    pip += ["--no-deps", "--only-binary=:all:", "--dest", str(directory), pinned]
    done = subprocess.run(pip, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    found = list(directory.glob("*.whl"))
    if done.returncode or not found:
        lines = done.stderr.splitlines()
        vague = ("ERROR: Exception:", "ERROR: Ignored the following")
        errors = [line for line in lines if line.startswith("ERROR: ") and not line.startswith(vague)]
        if "has invalid metadata" in done.stderr:
            errors = ["pip 24.1 and later refuse the metadata of this release, and pip below 24.1 accepts it"]
        raise LookupError(f"pip cannot download {pinned}: {' '.join(errors[:1] or lines[-1:])}. {otherwise}")
    return found[0]


def _release(distribution: str, version: str) -> str:
    """Return the known release that pip takes for a version: 2.2.0 for 2.2."""
    try:
        return next(filter(Version(version).__eq__, map(Version, releases.known(distribution)))).public
    except (InvalidVersion, StopIteration):
        return version


def _installed() -> str:
    """The distribution that is installed here; ``lightning`` if both are, or none."""
    installed = {one.distribution for one in find_installed()}
    return next((name for name in wheel.DISTRIBUTIONS if name in installed), wheel.DISTRIBUTIONS[0])
