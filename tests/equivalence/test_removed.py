"""Each name in ``removed.txt`` exists in the releases before its removal, and in no later one."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lightning_patches.patches.removed import rows

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]
import _releases

RELEASES = ("1.5.10", "1.6.5", "1.7.7", "1.8.6", "1.9.5", "2.0.9", "2.1.4", "2.2.5", "2.6.6")
LOOK = """
import importlib, inspect, json, sys, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "1":
    from tests.support import with_packages_of_1x
    import lightning_patches
    lightning_patches.activate('default,quiet')
import pytorch_lightning as pl

def is_there(kind, owner, member):
    if kind == "module":
        module = importlib.import_module("pytorch_lightning." + member)
        return None if "_graveyard" in (module.__file__ or "") else True
    if kind == "name":
        found = getattr(importlib.import_module(".".join(filter(None, ["pytorch_lightning", owner]))), member)
    elif kind == "attribute":
        found = getattr(getattr(pl, owner), member)
        found = getattr(found, "fget", None) or found
    else:
        parts = owner.split(".")
        places = [pl, pl.callbacks]
        if parts[0] == "LightningCLI":
            places = [importlib.import_module("pytorch_lightning." + sys.argv[2])]
        found = next(getattr(place, parts[0]) for place in places if hasattr(place, parts[0]))
        for part in parts[1:]:
            found = getattr(found, part)
        return member in inspect.signature(found).parameters
    return "_graveyard" not in getattr(found, "__module__", "")

found = []
for row in json.load(sys.stdin):
    try:
        found.append(is_there(*row))
    except Exception:
        found.append(False)
print("found:", json.dumps(found))
"""


def key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def before(gone: str) -> str:
    """The last release of ``RELEASES`` that comes before another one; "" for none."""
    return max((one for one in RELEASES if key(one) < key(gone)), key=key, default="")


@pytest.mark.parametrize("version", RELEASES)
def test_removed_names_existed_before(version):
    kinds = ("module", "name", "argument", "attribute")
    asked = [row for row in rows() if row.kind in kinds and row.name != "Trainer.tuner"]  # set per object
    path = [str(_releases.unpacked("pytorch-lightning", version)), str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-c", LOOK, version[0], "cli" if key(version) >= (1, 7) else "utilities.cli"],
        input=json.dumps([(row.kind, row.owner, row.member) for row in asked]),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = dict(zip([row.name for row in asked], json.loads(done.stdout.rpartition("found: ")[2])))
    wrong = [row.name for row in asked if key(row.gone) <= key(version) and found[row.name] is True]
    lost = [row.name for row in asked if before(row.gone) == version and found[row.name] is False]
    unseen = [row for row in lost if "LightningCLI" in row and version == "1.5.10"]  # it cannot be imported
    assert (wrong, sorted(set(lost) - set(unseen))) == ([], [])


@pytest.mark.parametrize("row", [row for row in rows() if row.is_silent], ids=lambda row: row.member)
def test_uncalled_hook_is_unknown_to_the_release(row):
    def named(version):
        files = (_releases.unpacked("pytorch-lightning", version) / "pytorch_lightning").rglob("*.py")
        name = rf"""(?<!_connector)["'.]{row.member}["'(]"""  # its subclass has methods of the same names
        return any(re.search(name, file.read_text()) for file in files)

    assert not named("2.6.6") and not named("2.0.9")
    assert named(before(row.gone))
