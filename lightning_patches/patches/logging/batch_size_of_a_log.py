"""self.log reads the batch size from the first tensor and does not search further."""

import contextlib
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_RESULT = "pytorch.trainer.connectors.logger_connector.result"


def _extract(original: Callable[..., int], namespace: str) -> Callable[..., int]:
    def _extract_batch_size(self: Any, value: Any, batch_size: Any, meta: Any) -> int:
        is_tensor = getattr(value, "is_tensor", False)  # a dict of values in 1.x has no is_tensor
        is_asked = self.batch is not None and is_tensor and meta.on_epoch and meta.is_mean_reduction
        if is_asked and batch_size is None and self.batch_size is None:
            sizes = upstream_module(namespace, "pytorch.utilities.data")._extract_batch_size(self.batch)
            with contextlib.suppress(RecursionError):  # the original raises a clear error
                self.batch_size = next((size for size in sizes if size is not None), None)
        return original(self, value, batch_size, meta)

    return _extract_batch_size


PATCH = Patch(
    added="0.2.0",
    group="performance",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(Target(f"{_RESULT}:_ResultCollection._extract_batch_size", _extract),),
    upstream=Upstream(issues=(10349, 10093)),
    impact=Impact(
        "For an epoch mean, the first self.log of each step searches the whole batch for tensors, and warns "
        "once per size if they differ in the first dimension. Lightning uses the size of the first tensor in "
        "any case.",
        ("Trying to infer the `batch_size` from an ambiguous collection", "_extract_batch_size is replaced by hand"),
    ),
    opt_in="users who log without batch_size= in a model whose batches contain many tensors, such as graphs",
    note="Opt-in because the warning shows that the mean may have wrong weights. Without the patch, pass the "
    "size: self.log(name, value, batch_size=len(batch[0])). Lightning then doesn't search the batch, and "
    "weights the mean correctly.",
)
