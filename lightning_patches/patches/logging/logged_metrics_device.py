"""Logged metrics follow the device of the logged value."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.logging._device import is_on

_RESULT = "pytorch.trainer.connectors.logger_connector.result"


def _update_metrics(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update_metrics(self: Any, key: str, value: Any, batch_size: int) -> None:
        # The teardown of an earlier run moved its metrics to the CPU, but the state must be on the value's device.
        # Comparing devices is cheap; the official fix moves the metric at each call.
        metric, device = self[key], value.device
        if not is_on(metric, device):
            metric.to(device)
        original(self, key, value, batch_size)

    return update_metrics


PATCH = Patch(
    group="crash",
    affected=(">=2.1.0,<2.4.0",),
    targets=(Target(f"{_RESULT}:_ResultCollection.update_metrics", _update_metrics),),
    witnesses=(f"{_RESULT}:_ResultCollection.log",),
    upstream=Upstream(
        issues=(19813, 18803),
        pull_requests=(19814,),
        commit="b19eba3ac7",
        fixed_in="2.4.0",
        tests=("tests/tests_pytorch/trainer/logging_/test_logger_connector.py::test_result_collection_changes_device",),
    ),
    impact=Impact(
        "After lr_find, or in the second fit of one Trainer, self.log(..., sync_dist=True) under multi-GPU DDP "
        "ends the training.",
        ("No backend type associated with device type cpu",),
        error="RuntimeError: No backend type associated with device type cpu",
    ),
)
