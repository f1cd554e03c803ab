"""Print the verdict of each patch after the modules that it changes are imported, for ``scripts/_stacks.py``."""

import contextlib
import importlib

import _scenario as scenario

import lightning_patches
from lightning_patches import patches
from lightning_patches.engine import distributions

if __name__ == "__main__":
    for patch in patches.all_patches():
        for target in patch.targets:
            # this release lacks the module, or only the other namespace has the part
            with contextlib.suppress(ImportError, KeyError):
                importlib.import_module(distributions.module_name(scenario.NAMESPACE, target.module))
    entries = [entry for entry in lightning_patches.report() if entry.namespace == scenario.NAMESPACE]
    scenario.observe(verdicts={entry.patch: [entry.verdict, entry.reason] for entry in entries})
