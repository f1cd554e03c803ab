"""Warn when self.log(on_step=True) gets a metric that has no value for the step."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title


def _update(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update(self: Any, value: Any, batch_size: int) -> None:
        original(self, value, batch_size)
        if not self.is_tensor and self.meta.on_step and self._forward_cache is None:
            notices.warn_once(
                f"metric-without-step-value {self.meta.name}",
                f"self.log({self.meta.name!r}, ..., on_step=True) logs no value for the step: {type(value).__name__} "
                "has none. metric.update(...) leaves no value of the batch, and a running metric has none at all. "
                "Call the metric itself, `metric(...)`, or log a tensor, such as `metric.compute()`.",
            )

    return update


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.trainer.connectors.logger_connector.result:_ResultMetric.update", _update),),
    upstream=Upstream(issues=(20160,)),
    impact=Impact(
        "self.log(name, metric, on_step=True) logs nothing at a step if the program called metric.update() "
        "instead of the metric itself, or if the metric is one of torchmetrics' running metrics such as "
        "RunningMean.",
        ("no step values are logged for a torchmetrics metric after update()", "RunningMean is not logged on_step"),
    ),
    after=("logged-tensor-precision",),
    note="This patch fixes nothing: it warns once for each name.",
)
