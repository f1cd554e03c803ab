"""A simulated CUDA device for the CPU build of torch.

After the import of this package, the next ``import torch`` finds CUDA devices. The C++ part is built and loaded only
when torch is imported. See the README beside ``site/``.
"""

import importlib.abc
import importlib.machinery
import sys

if "torch" in sys.modules:
    raise ImportError(
        "simulated_cuda must be imported before torch, which looks for CUDA once, while it is "
        "being imported. Import it first, or start Python with SIMULATED_CUDA=1 and the folder "
        "that holds sitecustomize.py on PYTHONPATH."
    )


class _TorchFinder(importlib.abc.MetaPathFinder):
    """Loads the C++ part just before torch runs and patches torch's Python part just after."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "torch":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return None
        torch_folder = spec.submodule_search_locations[0]
        run_torch = spec.loader.exec_module

        def exec_module(module):
            from simulated_cuda import _library

            _library.load(torch_folder)
            run_torch(module)

            from simulated_cuda import _distributed, _torch_cuda

            _torch_cuda.install()
            _distributed.install()

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _TorchFinder())
