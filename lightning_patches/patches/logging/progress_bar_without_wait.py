"""A metric for the progress bar is read from the GPU when it is displayed, not at each step."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_CONNECTOR = "pytorch.trainer.connectors.logger_connector.logger_connector:_LoggerConnector"


def _metrics(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def metrics(self: Any, on_step: bool) -> Any:
        shown = [metric for metric in self.values() if metric.meta.prog_bar]
        for metric in shown:
            metric.meta.prog_bar = False  # otherwise the original reads each value from the device
        try:
            found = original(self, on_step)
        finally:
            for metric in shown:
                metric.meta.prog_bar = True
        for _, metric in self.valid_items():
            value = self._get_cache(metric, on_step) if metric.meta.prog_bar else None
            if value is not None:
                found["pbar"][self._forked_name(metric, on_step)[1]] = value
        return found

    return metrics


def _progress_bar_metrics(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def progress_bar_metrics(self: Any) -> Any:
        import torch

        found = original(self)
        tensors = {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}
        found.update({name: value.item() for name, value in tensors.items() if value.numel() == 1})
        return found

    return progress_bar_metrics


PATCH = Patch(
    group="performance",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.trainer.connectors.logger_connector.result:_ResultCollection.metrics", _metrics),
        Target(f"{_CONNECTOR}.progress_bar_metrics", _progress_bar_metrics),
    ),
    upstream=Upstream(issues=(21232,)),
    impact=Impact(
        "self.log(..., prog_bar=True) makes each training step wait for the GPU several times, even without a "
        "progress bar or with one that is refreshed rarely.",
        (
            "low GPU utilization with prog_bar=True",
            "cudaStreamSynchronize in self.log",
            "metrics of the progress bar are computed without a progress bar",
        ),
    ),
    opt_in="users who log with prog_bar=True in fast steps on a GPU",
    signs=("prog_bar",),
    note="Opt-in because it helps only in fast steps on a GPU with a progress bar that is refreshed rarely: on "
    "a CPU, the patch makes reading slower. The same numbers are shown at the same time. A tensor that a "
    "program puts into trainer.progress_bar_metrics also becomes a number. Without the patch, use "
    "prog_bar=False if no progress bar is shown.",
)
