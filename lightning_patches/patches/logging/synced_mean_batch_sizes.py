"""The mean that sync_dist logs is correct if ranks have different numbers of samples."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_RESULT = "pytorch.trainer.connectors.logger_connector.result"


def _compute(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def compute(self: Any) -> Any:
        sync = self.meta.sync
        if not (sync.should and self.is_tensor and self.meta.is_mean_reduction):
            return original(self)
        if self.cumulated_batch_size.is_floating_point():
            return original(self)
        # Lightning averages the batch sizes as int64, which has eight bytes. Use eight bytes here, too, because gloo
        # aborts if the messages of two ranks differ in size.
        value = sync(self.value.clone())
        return value / sync(self.cumulated_batch_size.double()).to(value.dtype)

    return compute


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "logged means over ranks with unequal numbers of samples"),
    affected=(">=2.0.7,<=2.6.6",),
    # A custom strategy would receive tensors of other sizes.
    targets=(Target(f"{_RESULT}:_ResultMetric.compute", _compute, stock=("self.meta.sync.fn",)),),
    upstream=Upstream(issues=(21838, 12354), pull_requests=(21839,)),
    impact=Impact(
        "With self.log(..., on_epoch=True, sync_dist=True) and ranks with different numbers of samples, the "
        "epoch mean is too large: it can be 1.25 if each value was 1.",
        ("epoch mean is wrong with sync_dist and uneven batches", "sync_dist mean too large"),
    ),
    note="Lightning truncates the average of the ranks' numbers of samples to an integer; the patch does not. "
    "Ranks with equal numbers of samples log the same means. With different numbers the mean changes, and "
    "so does everything that monitors it: adjust thresholds that were tuned to the wrong mean. A strategy "
    "with a custom reduce is unchanged. Without the patch, log a torchmetrics.MeanMetric that is updated "
    "with the batch sizes as weights.",
)
