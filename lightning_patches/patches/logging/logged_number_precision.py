"""Logged Python numbers are stored in float32, even in half precision."""

from numbers import Real
from typing import Any, Callable

from lightning_patches.engine.functions import stock_of
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _log_number(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    moves = "_distributed_available" in stock_of(original).__code__.co_names  # 2.0, which uses the tensor's device

    def log(self: Any, name: str, value: Any, *args: Any, **kwargs: Any) -> None:
        import torch

        # A Trainer converts the number to a tensor. Fabric passes the number to its loggers.
        is_half = torch.get_default_dtype() in (torch.bfloat16, torch.float16)
        if is_half and isinstance(value, Real) and getattr(self, "_fabric", None) is None and self._trainer is not None:
            value = torch.tensor(value, device=None if moves else self.device, dtype=torch.float32)
        original(self, name, value, *args, **kwargs)

    return log


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "logged values in half precision"),
    affected=(">=1.8.0,<2.1.3",),
    targets=(Target("pytorch.core.module:LightningModule.log", _log_number),),
    upstream=Upstream(pull_requests=(19046,), commit="1fcb4ae637", fixed_in="2.1.3"),
    impact=Impact(
        "With precision='bf16-true' or '16-true', Python numbers passed to self.log are rounded to two or "
        "three digits.",
        ("self.log rounds numbers in bf16-true",),
    ),
    after=("log-plain-tensors",),
)
