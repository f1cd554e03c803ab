"""Logged values are averaged in float32, even in half precision."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_RESULT = "pytorch.trainer.connectors.logger_connector.result"

_TEST = "tests/tests_pytorch/core/test_metric_result_integration.py::test_metric_result_precision_no_lower_than_float32"


def _update(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update(self: Any, value: Any, batch_size: int) -> None:
        import torch

        if self.is_tensor and value.dtype not in (torch.float32, torch.float64):
            dtype = torch.promote_types(torch.get_default_dtype(), torch.float32)
            if torch.is_floating_point(value):
                value = value.to(dtype)
            elif dtype != torch.get_default_dtype():  # otherwise the original converts it, with a warning
                upstream_module(namespace, _RESULT).warning_cache.warn(
                    f"The value of `self.log({self.meta.name!r}, ...)` in `{self.meta.fx}` is {value.dtype}; logged"
                    f" values are kept as floating point numbers, this one as {dtype}."
                )
                value = value.to(dtype)
        original(self, value, batch_size)

    return update


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "logged values in half precision"),
    affected=(">=1.8.0,<2.1.0",),
    targets=(Target(f"{_RESULT}:_ResultMetric.update", _update),),
    upstream=Upstream(pull_requests=(18686,), commit="b69f3c6d10", fixed_in="2.1.0", tests=(_TEST,)),
    impact=Impact(
        "If torch's default dtype is bfloat16 or float16, the epoch mean that self.log reports is far too small: 1000 "
        "losses of 1 are logged as 0.256.",
        ("logged epoch loss is wrong in bf16", "epoch metric too small in half precision"),
    ),
)
