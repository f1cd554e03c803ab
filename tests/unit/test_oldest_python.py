"""Every module of the package can be imported in Python 3.8, which Lightning 2.0 to 2.3 support.

Python 3.8 refuses these features of 3.9 when a module is imported: ``functools.cache``, ``dict[str, int]`` outside of
annotations, ``class Report(list[Entry])``, ``with (a, b):``.
"""

import json
import subprocess

import pytest

from tests.support import pythons
from tests.support.variants import ROOT

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
