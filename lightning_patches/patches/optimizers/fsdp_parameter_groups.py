"""FSDP accepts an optimizer whose first parameter group has no FSDP parameters."""

from types import SimpleNamespace
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _has_flat(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def _optimizer_has_flat_params(optimizer: Any) -> bool:
        # The original checks only the first group.
        return any(original(SimpleNamespace(param_groups=[group])) for group in optimizer.param_groups)

    return _optimizer_has_flat_params


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.0.0,<2.0.5",),
    targets=(Target("fabric.strategies.fsdp:_optimizer_has_flat_params", _has_flat),),
    upstream=Upstream(pull_requests=(17914,), commit="9337d1c272", fixed_in="2.0.5"),
    impact=Impact(
        "FSDP rejects an optimizer whose first parameter group has no sharded parameter, although another "
        "group has one.",
        ("The optimizer does not seem to reference any FSDP parameters",),
        error="ValueError: The optimizer does not seem to reference any FSDP parameters. ...",
    ),
)
