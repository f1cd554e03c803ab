"""A Python with an old torch, for bugs that newer torch versions have fixed.

On Debian 12, torch 1.13.1 is a package, which Lightning 2.0 to 2.2 accept:

    apt-get install --no-install-recommends python3-torch
    /usr/bin/python3 -m venv --system-site-packages --without-pip DIRECTORY
    pip --python DIRECTORY/bin/python install --no-deps -r tests/support/old_torch/requirements.txt
    export LIGHTNING_PATCHES_TEST_OLD_TORCH=DIRECTORY/bin/python

Without that variable ``/usr/bin/python3`` is used. ``site`` is first on its path.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Optional

VARIABLE = "LIGHTNING_PATCHES_TEST_OLD_TORCH"
SITE = Path(__file__).with_name("site")
RELEASES = ">=2.0.0,<2.3.0"
"""Lightning releases that can be imported with it."""
_ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = """
import os
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
import lightning_utilities, torch, torchmetrics, wrapt
from lightning_patches.patches import all_patches
probes = {patch.probe for patch in all_patches() if patch.probe is not None}
print("torch", torch.__version__, "shows", sum(probe() for probe in probes), "of", len(probes))
"""


@dataclass(frozen=True)
class OldTorch:
    """The result of the search.

    Args:
        python: the interpreter, ``None`` if no suitable one was found.
        torch: version of its torch.
        reason: why no interpreter was found.
    """

    python: Optional[str]
    torch: str = ""
    reason: str = ""


@cache
def find() -> OldTorch:
    """Find an interpreter whose torch has every bug that a patch probes for."""
    python = os.environ.get(VARIABLE, "/usr/bin/python3")
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join((str(SITE), str(_ROOT)))}
    try:
        done = subprocess.run([python, "-c", _PROGRAM], env=variables, capture_output=True, text=True, timeout=120)
    except OSError as error:
        return OldTorch(None, reason=f"no Python with an old torch ({VARIABLE}): {error}")
    words = done.stdout.split()
    if done.returncode or len(words) != 6:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return OldTorch(None, reason=f"no Python with an old torch ({VARIABLE}): {python}: {last}")
    if words[3] != words[5]:
        return OldTorch(None, reason=f"torch {words[1]} of {python} does not have the bugs of an old one ({VARIABLE})")
    return OldTorch(python, words[1])
