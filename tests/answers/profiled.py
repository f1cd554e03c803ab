"""One profile within another, by AdvancedProfiler of a release, on a Python without torch: prints the traceback.

python3.12 tests/answers/profiled.py SITE PACKAGE
"""

import importlib.machinery
import linecache
import os
import sys
import traceback
import unittest.mock

SITE, ROOT = sys.argv[1:]
SCRIPT = "/home/me/project/train.py"
SOURCE = f"""
from {ROOT}.profilers.advanced import AdvancedProfiler

def main():
    profiler = AdvancedProfiler(dirpath=".", filename="profile")
    with profiler.profile("epoch"):
        with profiler.profile("batch"):
            pass

main()
"""


class StandIn:
    """Everything but the profilers themselves, which need none of it to start."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in (ROOT.split(".")[0], "torch", "lightning_fabric") and "profilers." not in name:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = unittest.mock.MagicMock()
        module.__path__, module.__spec__ = [os.path.join(SITE, *spec.name.split("."))], spec
        return module

    def exec_module(self, module):
        pass


linecache.cache[SCRIPT] = (len(SOURCE), None, SOURCE.splitlines(True), SCRIPT)
sys.path.insert(0, SITE)
sys.meta_path.insert(0, StandIn())
try:
    exec(compile(SOURCE, SCRIPT, "exec"), {})
except ValueError as error:
    tb = error.__traceback__
    print("".join(traceback.format_exception(type(error), error, tb and tb.tb_next)), end="")
