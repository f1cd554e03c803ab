"""The entry points of an installation must not end a program that never asked for this package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.variants import ROOT, Variant, environment_of

PROGRAM = """
import importlib.metadata, sys, warnings
warnings.simplefilter("ignore")
from lightning.fabric import Fabric
from lightning.pytorch import Trainer
Trainer(accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False)
Fabric(accelerator="cpu", devices=1)
print("both made", "lightning_patches" in sys.modules)
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout, in which ``pip install .`` was run for another environment."""
    copy = tmp_path_factory.mktemp("installed") / "checkout"
    ignored = shutil.ignore_patterns("*.egg-info", "__pycache__", ".*", "build", "tests")
    shutil.copytree(ROOT, copy, ignore=ignored)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--target", str(copy.parent / "target"), "."], check=True, cwd=copy)
    assert (copy.parent / "target" / "_lightning_patches").is_dir()
    return copy


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with torch and Lightning 2.3.3, in which this package is not installed."""
    packages = tmp_path_factory.mktemp("packages")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "lightning_patches" not in entry.name:
            (packages / entry.name).symlink_to(entry)
    found = dict(environment_of(Variant("lightning", "2.3.3")))
    path = [entry for entry in found["PYTHONPATH"].split(os.pathsep) if entry != str(ROOT)]
    dropped = [name for name in found if "LIGHTNING_PATCHES" in name]
    return {
        **{k: v for k, v in found.items() if k not in dropped},
        "PYTHONPATH": os.pathsep.join([*path, str(packages)]),
    }


@pytest.mark.parametrize("toggle", ["", "1"])
@pytest.mark.parametrize("how", ["PYTHONPATH", "current folder", "not at all"])
def test_program_beside_a_checkout_is_not_patched(checkout, variables, how, toggle):
    more = {"LIGHTNING_PATCHES": toggle}
    if how == "PYTHONPATH":
        more["PYTHONPATH"] = variables["PYTHONPATH"] + os.pathsep + str(checkout)
    python = os.path.join(sys.base_prefix, "bin", "python3")
    done = subprocess.run(
        [python, "-c", PROGRAM], env={**variables, **more}, cwd=checkout if how == "current folder" else "/",
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "both made False\n"
    assert "is not patched" not in done.stderr  # it is not installed here


def test_entry_points_module_is_next_to_its_metadata(checkout: Path) -> None:
    """A path with the metadata also has the module."""
    found = [path.relative_to(checkout) for path in checkout.rglob("entry_points.txt")]
    assert found == [Path("lightning_patches/activation/entry_points/lightning_patches.egg-info/entry_points.txt")]
    assert (checkout / "lightning_patches" / "activation" / "entry_points" / "_lightning_patches").is_dir()
