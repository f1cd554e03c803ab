"""``pytorch/trainer/connectors/logger_connector/result.py``: what ``self.log`` accumulates."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_RESULT = "pytorch.trainer.connectors.logger_connector.result"


def _update_metrics(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update_metrics(self: Any, key: str, value: Any, batch_size: int) -> None:
        # A metric registered in an earlier run was moved to the CPU when that run was torn down; the state that it
        # reduces has to follow the value. Moving is rare and comparing is cheap: the official fix moves every time.
        metric, device = self[key], value.device
        if not _is_on(metric, device):
            metric.to(device)
        original(self, key, value, batch_size)

    return update_metrics


def _to(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and _is_on(self, args[0]):
            return self
        return original(self, *args, **kwargs)

    return to


def _is_on(metric: Any, device: Any) -> bool:
    """Whether what a ``_ResultMetric`` reduces is on ``device``. Its own ``device`` cannot tell: it never changes."""
    state = vars(metric)
    value = state.get("value")
    if value is None:
        return True  # a torchmetrics metric, which comes with the first update
    if value.device != device:
        return False
    batch_size = state.get("cumulated_batch_size")
    return batch_size is None or bool(batch_size.device == device)


PATCHES = (
    Patch(
        name="logged-metrics-device",
        title="Logged metrics follow the device of the logged value",
        group="crash",
        affected=(">=2.1.0,<2.4.0",),
        targets=(Target(f"{_RESULT}:_ResultCollection.update_metrics", _update_metrics),),
        witnesses=(f"{_RESULT}:_ResultCollection.log",),
        upstream=Upstream(
            issues=(19813, 18803),
            pull_requests=(19814,),
            commit="b19eba3ac7",
            fixed_in="2.4.0",
            tests=(
                "tests/tests_pytorch/trainer/logging_/test_logger_connector.py::test_result_collection_changes_device",
            ),
        ),
        impact=Impact(
            "After lr_find, or in the second fit of one Trainer, self.log(..., sync_dist=True) under multi-GPU DDP "
            "ends the training.",
            ("No backend type associated with device type cpu",),
        ),
    ),
    Patch(
        name="log-metrics-without-move",
        title="self.log moves a metric only when it is on another device",
        group="performance",
        affected=(">=2.4.0,<=2.6.6",),
        targets=(Target(f"{_RESULT}:_ResultMetric.to", _to),),
        witnesses=(f"{_RESULT}:_ResultCollection.log",),
        upstream=Upstream(issues=(20388,)),
        impact=Impact(
            "Each self.log costs about 0.2 ms more than in 2.3, whatever is logged: small models that log several "
            "values per step train up to several times slower.",
            ("self.log is slow since 2.4.0", "training slower after upgrade to 2.4"),
        ),
        equivalent_to="the same training without the move that moves nothing",
    ),
)
