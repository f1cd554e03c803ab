"""Ranks that ddp_spawn starts on the CPU do not share parameters."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints.compiled_names import named_tensors

_LAUNCHER = "strategies.launchers.multiprocessing:_MultiProcessingLauncher._wrapping_function"


def _of_trainer(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return _unshared(original, namespace, "pytorch.accelerators")


def _of_fabric(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return _unshared(original, namespace, "fabric.accelerators")


def _unshared(original: Callable[..., None], namespace: str, accelerators: str) -> Callable[..., None]:
    def wrapping_function(self: Any, process_idx: int, *arguments: Any) -> None:
        cpu = upstream_module(namespace, accelerators).CPUAccelerator
        shared = self._start_method == "spawn" and self._strategy.num_processes > 1
        if shared and isinstance(self._strategy.accelerator, cpu):
            _unshare(arguments)
        original(self, process_idx, *arguments)

    return wrapping_function


def _unshare(arguments: Any) -> None:
    """Move the parameters and buffers of the modules in ``arguments`` out of shared memory, by replacing their data."""
    import torch
    from lightning_utilities.core.apply_func import apply_to_collection

    def unshare(module: Any) -> Any:
        with torch.no_grad():
            for _, tensor in named_tensors(module):
                tensor.data = tensor.data.clone()
        return module

    apply_to_collection(arguments, torch.nn.Module, unshare)


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "each rank has its own parameters"),
    affected=(">=1.8.0,<2.0.8",),
    targets=(Target(f"pytorch.{_LAUNCHER}", _of_trainer), Target(f"fabric.{_LAUNCHER}", _of_fabric)),
    upstream=Upstream(
        pull_requests=(18238,),
        commit="a0ca2c8bcd",
        fixed_in="2.0.8",
        tests=(
            "tests/tests_pytorch/strategies/launchers/test_multiprocessing.py::test_memory_sharing_disabled",
            "tests/tests_fabric/strategies/launchers/test_multiprocessing_integration.py::test_memory_sharing_disabled",
        ),
    ),
    impact=Impact(
        "With strategy='ddp_spawn' on the CPU, all ranks train the same parameters in shared memory: each "
        "optimizer step runs once per rank, in a race.",
        ("ddp_spawn on CPU gives other results than ddp", "loss diverges with ddp_spawn on the CPU"),
    ),
    note="With one process nothing changes: the script that started it sees the trained parameters.",
)
