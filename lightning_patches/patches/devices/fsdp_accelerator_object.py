"""FSDP accepts a CUDAAccelerator object as the accelerator."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_CONNECTOR = "pytorch.trainer.connectors.accelerator_connector:_AcceleratorConnector"


def _check(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _check_strategy_and_fallback(self: Any) -> None:
        given = self._accelerator_flag
        if isinstance(given, upstream_module(namespace, "pytorch.accelerators.cuda").CUDAAccelerator):
            self._accelerator_flag = "cuda"  # the original compares names
        try:
            original(self)
        finally:
            self._accelerator_flag = given

    return _check_strategy_and_fallback


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.0.0,<2.5.3",),
    targets=(Target(f"{_CONNECTOR}._check_strategy_and_fallback", _check),),
    upstream=Upstream(pull_requests=(20964,), commit="460c60cc97", fixed_in="2.5.3"),
    impact=Impact(
        "Trainer(accelerator=CUDAAccelerator(), strategy='fsdp') is refused, although it is a GPU accelerator.",
        (
            "The strategy `fsdp` requires a GPU accelerator, but got: <",
            "You selected strategy to be `fsdp`, but GPU accelerator is not used.",
        ),
        error="ValueError: The strategy `fsdp` requires a GPU accelerator, but got: <...CUDAAccelerator object at ...>",
    ),
)
