"""Python processes that the package and the scripts start must not import from an untrusted directory.

Every module of the package can be imported in Python 3.8, which Lightning 2.0 to 2.3 support.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lightning_patches.cli import fork
from tests.support import pythons
from tests.support.variants import ROOT

import _releases  # isort: skip

CONSOLE_SCRIPT = "import sys; from lightning_patches.cli import main; sys.exit(main())\n"
START = """
import json, os, subprocess, sys
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
sys.path.insert(0, sys.argv[1])
from lightning_patches import system
for command in (
    system.python_command("-m", "this"),
    system.python_command("-c", "import json, sys, this; print(json.dumps(sys.argv[1:]))", "one", "-m"),
):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    print(json.dumps(done.stdout.decode().splitlines()))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory with modules that leave a file ``marker`` beside them when they are imported."""
    directory = tmp_path / "checkout"
    for package in ("pip", "venv"):
        (directory / package).mkdir(parents=True)
        for name in ("__init__.py", "__main__.py"):
            (directory / package / name).write_text(f"open({str(directory / 'marker')!r}, 'w').close()\n")
    (directory / "this.py").write_text(f"open({str(directory / 'marker')!r}, 'w').close()\n")
    return directory


def with_wheels(*wheels: Path) -> dict[str, str]:
    """Return variables with which pip finds these wheels and uses no index."""
    (directory,) = {str(wheel.parent) for wheel in wheels}
    return {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": directory, "PYTHONPATH": str(ROOT)}


def test_fork_uses_the_installed_pip_despite_a_pip_folder(checkout: Path, tmp_path: Path) -> None:
    variables = with_wheels(_releases.wheel("lightning", "2.2.5"))
    program = tmp_path / "lightning-patches"
    program.write_text(CONSOLE_SCRIPT)
    command = [sys.executable, str(program), "fork", "lightning==2.2.5"]
    done = subprocess.run(command, cwd=checkout, env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(list(checkout.glob("dist/*.whl"))) == 1
    assert not (checkout / "marker").exists()


@pytest.mark.parametrize("minor", pythons.MINORS)
def test_helper_python_ignores_modules_of_the_working_directory(checkout: Path, minor: str) -> None:
    python = pythons.find(minor)
    if python is None:
        pytest.skip(f"no Python {minor} on this machine")
    command = [python, "-I", "-c", START, str(ROOT)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    zen, arguments = map(json.loads, done.stdout.splitlines())
    assert zen[0].startswith("The Zen of Python")
    assert json.loads(arguments[-1]) == ["one", "-m"]
    assert not (checkout / "marker").exists()


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("ERROR: Exception:\nTraceback (most recent call last):\nUnicodeDecodeError: byte 0xe9\n",
         "UnicodeDecodeError"),
        ("WARNING: a\nERROR: No matching distribution\nERROR: b\n",
         "ERROR: No matching distribution. Run `pip download"),
        ("ERROR: Ignored the following yanked versions: 1\nERROR: b\n", "ERROR: b. Run `pip download"),
        ("WARNING: Ignoring it since it has invalid metadata:\nERROR: b\n", "pip 24.1 and later refuse the metadata"),
        ("", ". Run `pip download"),
    ],
)  # fmt: skip
def test_fork_shows_the_line_of_pip_that_says_why(tmp_path, monkeypatch, printed, shown):
    failed = subprocess.CompletedProcess([], 1, "", printed)
    monkeypatch.setattr(fork.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(LookupError, match=re.escape(f"pip cannot download lightning==2.2.5: {shown}")):
        fork._official("lightning==2.2.5", tmp_path)


OLDEST = "3.8"
IMPORT_ALL = """
import importlib, json, os, pkgutil, sys
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
import lightning_patches
for module in pkgutil.walk_packages(lightning_patches.__path__, "lightning_patches."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps("torch" in sys.modules))
"""


def test_every_module_can_be_imported_without_torch():
    made = pythons.with_packages(OLDEST)
    if made.python is None:
        pytest.skip(made.reason)
    done = subprocess.run([made.python, "-c", IMPORT_ALL], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) is False, "torch was imported"
