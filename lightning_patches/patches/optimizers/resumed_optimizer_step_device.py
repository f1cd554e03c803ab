"""After resuming, the optimizer's step count stays on the CPU."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _to_device(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _optimizer_to_device(optimizer: Any, device: Any) -> None:
        stays = _steps_on_the_cpu(optimizer)
        original(optimizer, device)
        for parameter, step in stays:
            optimizer.state[parameter]["step"] = step

    return _optimizer_to_device


def _steps_on_the_cpu(optimizer: Any) -> list[tuple[Any, Any]]:
    """Return the step counts that torch expects on the CPU: those of parameters that are not fused or capturable."""
    import torch

    found = []
    for group in optimizer.param_groups:
        if group.get("fused") or group.get("capturable"):
            continue
        for parameter in group.get("params", ()):  # a custom optimizer may have no "params"
            state = optimizer.state.get(parameter)
            step = state.get("step") if isinstance(state, dict) else None
            if isinstance(step, torch.Tensor) and step.ndim == 0 and step.device.type == "cpu":
                found.append((parameter, step))
    return found


PATCH = Patch(
    group="performance",
    affected=(">=1.8.0,<2.4.0",),
    targets=(
        Target("fabric.utilities.optimizer:_optimizer_to_device", _to_device),
        Target("lite.utilities.optimizer:_optimizer_to_device", _to_device),
    ),
    upstream=Upstream(
        issues=(19955,),
        pull_requests=(20019,),
        commit="631911c004",
        fixed_in="2.4.0",
        tests=("tests/tests_fabric/utilities/test_optimizer.py::test_optimizer_to_device",),
    ),
    impact=Impact(
        "After training is resumed on a GPU, Adam and other optimizers that count their steps are slower: each "
        "step waits for the GPU once per parameter to read the count.",
        ("Adam is slower after loading a checkpoint", "training is slower after resume"),
    ),
    note="A step count that torch needs on the device (fused, capturable), and a custom optimizer's step that "
    "is more than a number, are still moved, also back to the CPU at the end. The official fix never "
    "moves state with the name step. Code that reads Adam's step count after a resume finds it on the "
    "CPU, as in training that is not resumed; the weights are the same.",
)
