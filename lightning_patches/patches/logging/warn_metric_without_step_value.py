"""Warn when self.log(on_step=True) gets a metric that has no value for the step."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Target, Upstream
from lightning_patches.patches._warning import observe, stored, warn, warning


def _on_epoch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=_before)


def _before(self: Any) -> None:
    for metric in self.trainer._results.values():
        logs_step = not metric.is_tensor and metric.meta.on_step and not metric.has_reset
        if logs_step and stored(metric.value, "_forward_cache") is None:
            warn(
                f"metric-without-step-value {metric.meta.name}",
                f"self.log({metric.meta.name!r}, ..., on_step=True) logs no value for the step: "
                f"{type(metric.value).__name__} has none. metric.update(...) leaves no value of the batch, and a "
                "running metric has none at all. Call the metric itself, `metric(...)`, or log a tensor, such as "
                "`metric.compute()`.",
            )


PATCH = warning(
    Target("pytorch.trainer.connectors.logger_connector.logger_connector:_LoggerConnector.on_epoch_end", _on_epoch_end),
    added="0.3.0",
    affected=(">=2.0.0,<=2.6.6",),
    upstream=Upstream(issues=(20160,)),
    impact=Impact(
        "self.log(name, metric, on_step=True) logs nothing at a step if the program called metric.update() "
        "instead of the metric itself, or if the metric is one of torchmetrics' running metrics such as "
        "RunningMean.",
        ("no step values are logged for a torchmetrics metric after update()", "RunningMean is not logged on_step"),
    ),
    after=("warn-logged-keys-differ",),
    when=" for each name, at the end of an epoch",
)
