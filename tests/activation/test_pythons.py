"""The package on every Python of this machine: commands, activation, patching and a training.

Lightning 2.0 to 2.3 support Python 3.8. Few machines have torch for each Python, so only the training needs it.
"""

import subprocess
import sys

import pytest

from lightning_patches.fork import wheel
from tests.support import pythons
from tests.support.variants import ROOT, Variant, run

import _releases  # isort: skip

UNIT = ("early", "gate", "hooks", "notices", "patcher", "startup", "toggle", "verdicts")
"""Unit tests of what activates and patches: stand-ins for Lightning, and no torch."""
COMMANDS = (
    ("status", "--json"),
    ("list",),
    ("show", "logged-metrics-device"),
    ("audit", "--requirement", "lightning==2.2.5", "--json"),
    ("doctor",),
    ("autostart", "status"),
)


@pytest.fixture(scope="module", params=pythons.MINORS)
def python(request):
    made = pythons.with_packages(request.param)
    if made.python is None:
        pytest.skip(made.reason)
    return made.python


def execute(*command, timeout=300):
    return subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=timeout)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_print_the_same_on_every_python(python, command):
    done = execute(python, "-m", "lightning_patches", *command)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.strip(), done
    if command[0] in ("list", "show", "audit"):  # their output is the same on every Python
        expected = execute(sys.executable, "-m", "lightning_patches", *command)
        assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout)


def test_fork_has_the_same_bytes_on_every_python(python, tmp_path):
    official = _releases.wheel("lightning", "2.2.5")
    done = execute(python, "-m", "lightning_patches", "fork", official, "--output", tmp_path)
    assert done.returncode == 0, done
    (built,) = tmp_path.iterdir()
    here = wheel.write_wheel(wheel.make(official, wheel.default_set()), tmp_path / "here")
    assert built.read_bytes() == here.read_bytes()


def test_quick_unit_tests_pass_on_every_python(python):
    if python == pythons.with_packages("{}.{}".format(*sys.version_info)).python:
        pytest.skip("tests/unit runs them in this Python")
    files = [f"tests/unit/test_{name}.py" for name in UNIT]
    done = execute(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, timeout=550)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


@pytest.mark.parametrize("minor", pythons.MINORS)
def test_patch_fixes_the_training_on_every_python(minor):
    """Stock shows the bug; with the shim it is gone."""
    found = pythons.with_torch(minor)
    if found.python is None:
        pytest.skip(found.reason)
    stock = run("fit_resets_should_stop", Variant("pytorch-lightning", "2.0.9", python=found.python))
    shim = run("fit_resets_should_stop", Variant("pytorch-lightning", "2.0.9", shim=True, python=found.python))
    assert stock.ok and stock.observations == [{"steps": [2, 2]}], stock
    assert shim.ok and shim.observations == [{"steps": [2, 10]}], shim
