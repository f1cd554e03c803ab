"""Training on the CPU works on a machine with a broken CUDA driver."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _without_cuda(original: Callable[[], dict[str, Any]], namespace: str) -> Callable[[], dict[str, Any]]:
    def collect_rng_states() -> dict[str, Any]:
        import random

        import numpy  # type: ignore[import-not-found,unused-ignore]
        import torch

        if torch.cuda.is_available():
            return original()
        states = {"torch": torch.get_rng_state(), "numpy": numpy.random.get_state(), "python": random.getstate()}
        return {**states, "torch.cuda": []}

    return collect_rng_states


def _collect_rng_states(original: Callable[..., dict[str, Any]], namespace: str) -> Callable[..., dict[str, Any]]:
    def collect_rng_states(include_cuda: bool = True) -> dict[str, Any]:
        import torch

        if not include_cuda or torch.cuda.is_available():
            return original(include_cuda)
        return {**original(False), "torch.cuda": []}

    return collect_rng_states


PATCH = Patch(
    group="crash",
    affected=(">=1.8.0,<2.1.4",),
    targets=(
        Target("fabric.utilities.seed:_collect_rng_states", _collect_rng_states, since="2.0.0"),
        Target("fabric.utilities.seed:_collect_rng_states", _without_cuda, before="2.0.0"),
        Target("lite.utilities.seed:_collect_rng_states", _without_cuda),
    ),
    upstream=Upstream(
        pull_requests=(19234,),
        commit="ddd596a827",
        fixed_in="2.1.4",
        tests=("tests/tests_fabric/utilities/test_seed.py::test_collect_rng_states_if_cuda_init_fails",),
    ),
    impact=Impact(
        "On a machine whose CUDA driver is too old or broken, training with accelerator='cpu' fails before the sanity "
        "check, because Lightning reads the random state of the GPUs.",
        ("RuntimeError: The NVIDIA driver on your system is too old",),
        error="RuntimeError: The NVIDIA driver on your system is too old (found version ...).",
    ),
)
