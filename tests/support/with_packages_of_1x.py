"""Puts what Lightning 1.5 to 1.8 needs, and no later release does, on the path of the program that imports this."""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import _releases

del sys.path[0]
PINNED = ("tensorboard==2.21.0", "tensorboardX==2.6.4", "pyDeprecate==0.3.2", "absl-py==2.5.1", "protobuf==7.36.2")


def directory() -> Path:
    """Where they are, installed once; nothing else is installed or changed."""
    target = _releases.cache_dir() / "beside" / "packages-of-1x"
    with _releases.locked_directory(target.parent):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
                made = Path(temporary, "made")
                options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(made)]
                subprocess.run([sys.executable, "-m", "pip", "install", *options, *PINNED], check=True)
                made.rename(target)
    return target


if find_spec("deprecate") is None:  # a stack of their time has its own
    sys.path.insert(0, str(directory()))
