"""Turns the simulated CUDA device on in every Python process that has SIMULATED_CUDA=1.

Python imports the first ``sitecustomize`` on ``sys.path`` when it starts, so this reaches
processes that a launcher starts, too. Another ``sitecustomize`` which this one hides is
run as well.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _enable():
    if os.environ.get("SIMULATED_CUDA") != "1":
        return
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    import simulated_cuda  # noqa: F401


def _run_the_hidden_one():
    # the other one may also look for further ones, and find this file again
    if getattr(sys, "_simulated_cuda_sitecustomize_ran", False):
        return
    sys._simulated_cuda_sitecustomize_ran = True
    elsewhere = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


for _step in (_enable, _run_the_hidden_one):
    try:
        _step()
    except Exception as error:  # a start-up file must not stop Python
        print(f"simulated_cuda: {type(error).__name__} at start-up: {error}", file=sys.stderr)
