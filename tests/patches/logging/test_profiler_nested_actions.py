import subprocess

import pytest

from tests.support import pythons
from tests.support.variants import ROOT, Variant, directory_of

ERROR = "ValueError: Another profiling tool is already active"

WITHOUT_TORCH = """
import importlib.util, sys, types
def stand_in(name, **contents):
    sys.modules[name] = module = types.ModuleType(name)
    vars(module).update(contents)
class Profiler:
    def __init__(self, dirpath=None, filename=None): pass
    def teardown(self, stage): pass
    def _stats_to_str(self, stats): return stats
stand_in("pytorch_lightning.profilers.profiler", Profiler=Profiler)
stand_in("pytorch_lightning.utilities.rank_zero", rank_zero_only=None)
stand_in("lightning_fabric.utilities.cloud_io", get_filesystem=None)
stand_in("typing_extensions", override=lambda function: function)
spec = importlib.util.spec_from_file_location("advanced", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
if sys.argv[2] == "shim":
    from lightning_patches.patches.logging.profiler_nested_actions import PATCH
    module.AdvancedProfiler.start = PATCH.targets[0].build(module.AdvancedProfiler.start, "pytorch_lightning")
def work(): return sum(range(10))
profiler = module.AdvancedProfiler()
for action in ("epoch", "batch", "step"):
    profiler.start(action)
    work()
for action in ("step", "batch", "epoch"):
    profiler.stop(action)
profiler.start("batch")
work()
profiler.stop("batch")
print({action: "(work)" in text for action, text in profiler.summary().items()})
profiler.teardown("fit")
"""


@pytest.mark.parametrize("minor", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("version", ["2.0.0", "2.5.2"])
def test_nested_actions_are_measured_on_each_python(minor, version):
    """Loads only the release's file, since few machines have torch for each Python."""
    found = pythons.with_packages(minor)
    if found.python is None:
        pytest.skip(found.reason)
    file = directory_of(Variant("pytorch-lightning", version)) / "pytorch_lightning" / "profilers" / "advanced.py"
    stock, shim = (
        subprocess.run([found.python, "-c", WITHOUT_TORCH, file, variant], cwd=ROOT, capture_output=True, text=True)
        for variant in ("stock", "shim")
    )
    measured = "{'epoch': True, 'batch': True, 'step': True}"
    assert (ERROR in stock.stderr) if minor > "3.11" else (stock.stdout.strip() == measured), stock
    assert shim.stdout.strip() == measured, shim
