"""Puts Hydra on the path of the program that imports this, before Lightning looks for it.

It is in no environment of the tests: with OmegaConf, Lightning saves and loads hyperparameters in another way.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import _releases

del sys.path[0]
PINNED = ("hydra-core==1.3.2", "omegaconf==2.3.0", "antlr4-python3-runtime==4.9.3")


def directory() -> Path:
    """Where Hydra and what it needs are, installed once; nothing else is installed or changed."""
    target = _releases.cache_dir() / "beside" / PINNED[0]
    with _releases.locked_directory(target.parent):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
                made = Path(temporary, "made")
                options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(made)]
                subprocess.run([sys.executable, "-m", "pip", "install", *options, *PINNED], check=True)
                made.rename(target)
    return target


sys.path.insert(0, str(directory()))
