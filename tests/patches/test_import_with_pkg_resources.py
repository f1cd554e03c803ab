"""Where setuptools still has pkg_resources, its warning names who imports it: Lightning, with the shim as without."""

import subprocess
import sys

import pytest

from tests.support.arms import Arm, environment_of

pytest.importorskip("pkg_resources")
PROGRAM = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import lightning_patches_or_not, lightning.fabric
for warning in caught:
    if "pkg_resources" in str(warning.message):
        print(warning.category.__name__, warning.filename, warning.lineno, warning.message)
"""


def warnings_of(shim: bool) -> list[str]:
    program = PROGRAM.replace("lightning_patches_or_not", "lightning_patches" if shim else "os")
    variables = environment_of(Arm("lightning", "2.2.5", shim=shim))
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


def test_its_warning_is_upstreams_with_the_shim_as_without():
    stock = warnings_of(shim=False)
    assert any("lightning/fabric/__init__.py" in line and "deprecated as an API" in line for line in stock)
    assert warnings_of(shim=True) == stock
