"""Python numbers are logged, and logged tensors reduced, in double precision."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target

_MEAN = "_running_mean"
"""Attribute of a logged value: its mean since the last reset. It is exact if all values are equal, unlike their sum."""


def _log(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def log(self: Any, name: str, value: Any, *args: Any, **kwargs: Any) -> None:
        import torch

        is_number = type(value) in (int, float) and getattr(self, "_fabric", None) is None and self._trainer is not None
        if is_number and self.device.type != "mps":
            value = torch.tensor(value, device=self.device, dtype=torch.float64)
        original(self, name, value, *args, **kwargs)

    return log


def _update(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update(self: Any, value: Any, batch_size: int) -> None:
        if not (self.is_tensor and self.meta.on_epoch and value.is_floating_point()) or value.device.type == "mps":
            original(self, value, batch_size)
            return
        value = value.double()
        if not self.meta.is_mean_reduction:
            original(self, value, batch_size)
            return
        mean = None if self.has_reset else vars(self).get(_MEAN)
        mean = self.value / self.cumulated_batch_size.clamp(min=1) if mean is None else mean
        original(self, value, batch_size)
        total = self.cumulated_batch_size
        mean = mean + (value - mean) * batch_size / total.clamp(min=1)
        setattr(self, _MEAN, mean)
        self.value = mean * total

    return update


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "logged values have the digits of double precision"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.core.module:LightningModule.log", _log),
        Target("pytorch.trainer.connectors.logger_connector.result:_ResultMetric.update", _update),
    ),
    impact=Impact(
        "self.log rounds Python numbers to float32: 16777217 is logged as 16777216, 1e300 as inf, and a time in "
        "seconds can be a minute off. Epoch means and sums are computed in float32, and drift in epochs with many "
        "batches.",
        (
            "self.log of time.time() or a large int is rounded",
            "a step that is logged with self.log is rounded above 16777216",
            "epoch mean of self.log drifts with many batches",
        ),
        would_tell="that large numbers are logged, or epochs have many batches",
    ),
    after=("compiled-log", "logged-number-precision", "logged-tensor-precision"),
    opt_in="users who log large integers, times or steps, or compare means digit by digit",
    note="Opt-in because the digits of logged values, and the dtype of those in callback_metrics, change. MPS has no "
    "double precision, and is unchanged.",
)
