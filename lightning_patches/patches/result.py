"""``pytorch/trainer/connectors/logger_connector/result.py``: what ``self.log`` accumulates."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_RESULT = "pytorch.trainer.connectors.logger_connector.result"
_CONNECTOR = "pytorch.trainer.connectors.logger_connector.logger_connector:_LoggerConnector"
_TEST = "tests/tests_pytorch/core/test_metric_result_integration.py::test_metric_result_precision_no_lower_than_float32"


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


def _update(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update(self: Any, value: Any, batch_size: int) -> None:
        import torch

        if self.is_tensor and value.dtype not in (torch.float32, torch.float64):
            dtype = torch.promote_types(torch.get_default_dtype(), torch.float32)
            if torch.is_floating_point(value):
                value = value.to(dtype)
            elif dtype != torch.get_default_dtype():  # else the original does the same, and says so
                upstream_module(namespace, _RESULT).warning_cache.warn(
                    f"The value of `self.log({self.meta.name!r}, ...)` in `{self.meta.fx}` is {value.dtype}; logged"
                    f" values are kept as floating point numbers, this one as {dtype}."
                )
                value = value.to(dtype)
        original(self, value, batch_size)

    return update


def _compute(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def compute(self: Any) -> Any:
        if not (self.is_tensor and self.meta.is_mean_reduction):
            return original(self)
        # The mean of the ranks' batch sizes is taken in place, and in whole numbers if the sizes are whole.
        sizes = self.cumulated_batch_size
        self.cumulated_batch_size = sizes.to(self.value.dtype, copy=True)
        try:
            return original(self)
        finally:
            self.cumulated_batch_size = sizes

    return compute


def _metrics(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def metrics(self: Any, on_step: bool) -> Any:
        shown = [metric for metric in self.values() if metric.meta.prog_bar]
        for metric in shown:
            metric.meta.prog_bar = False  # or the original reads each from the device
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


PATCHES = (
    Patch(
        name="logged-tensor-precision",
        title="Logged values are averaged in float32, even in half precision",
        group="correctness",
        affected=(">=2.0.0,<2.1.0",),
        targets=(Target(f"{_RESULT}:_ResultMetric.update", _update),),
        upstream=Upstream(pull_requests=(18686,), commit="b69f3c6d10", fixed_in="2.1.0", tests=(_TEST,)),
        impact=Impact(
            "While torch's default dtype is bfloat16 or float16, the mean that self.log reports for an epoch is far "
            "too small: 1000 losses of 1 are logged as 0.256.",
            ("logged epoch loss is wrong in bf16", "epoch metric too small in half precision"),
        ),
    ),
    Patch(
        name="logged-metrics-device",
        title="Logged metrics follow the device of the logged value",
        group="crash",
        affected=(">=2.1.0,<2.4.0",),
        targets=(Target(f"{_RESULT}:_ResultCollection.update_metrics", _update_metrics),),
        witnesses=(f"{_RESULT}:_ResultCollection.log",),
        calls=("pytorch.trainer.connectors.logger_connector.result:_ResultMetric.to()",),
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
        relied_on="A program whose metrics lie on another device than what is logged, as after an earlier fit or a "
        "search, needs the move: there it is made as before.",
        relied_on_tests=(
            "tests/patches/test_log_metrics_without_move.py::test_metrics_of_an_earlier_run_are_still_moved",
        ),
    ),
    Patch(
        name="synced-mean-batch-sizes",
        title="The mean that sync_dist logs is right where ranks have unequal numbers of samples",
        group="correctness",
        affected=(">=2.0.7,<=2.6.6",),
        targets=(Target(f"{_RESULT}:_ResultMetric.compute", _compute),),
        calls=(
            "pytorch.trainer.connectors.logger_connector.result:_Metadata.is_mean_reduction()",
            "pytorch.trainer.connectors.logger_connector.result:_ResultMetric.__setattr__()",
        ),
        upstream=Upstream(issues=(21838, 12354), pull_requests=(21839,)),
        impact=Impact(
            "With self.log(..., on_epoch=True, sync_dist=True) and ranks that saw unequal numbers of samples, the mean "
            "of an epoch is too large: 1.25 where each value was 1.",
            ("epoch mean is wrong with sync_dist and uneven batches", "sync_dist mean too large"),
        ),
        equivalent_to="logging a torchmetrics.MeanMetric that is updated with the batch sizes as weights",
        note="The ranks' numbers of samples are averaged before they divide; the average of whole numbers was "
        "truncated to a whole number.",
        relied_on="Ranks with equal numbers of samples log the same means as before. With unequal ones the mean "
        "changes to the right one, and with it what monitors it: a threshold that was tuned to the wrong one has to "
        "be set anew.",
        relied_on_tests=("tests/patches/test_synced_mean_batch_sizes.py::test_equal_numbers_stay_as_they_are",),
    ),
    Patch(
        name="progress-bar-without-wait",
        title="A metric for the progress bar is read from the GPU when it is shown, not at each step",
        group="performance",
        default=False,
        affected=(">=2.0.0,<=2.6.6",),
        targets=(
            Target(f"{_RESULT}:_ResultCollection.metrics", _metrics),
            Target(f"{_CONNECTOR}.progress_bar_metrics", _progress_bar_metrics),
        ),
        calls=(
            "fabric.utilities.apply_func:convert_tensors_to_scalars()",
            "pytorch.trainer.connectors.logger_connector.result:_ResultCollection._forked_name()",
            "pytorch.trainer.connectors.logger_connector.result:_ResultCollection._get_cache()",
            "pytorch.trainer.connectors.logger_connector.result:_ResultCollection.valid_items()",
        ),
        upstream=Upstream(issues=(21232,)),
        impact=Impact(
            "self.log(..., prog_bar=True) makes every training step wait for the GPU several times, even where there "
            "is no progress bar, or one that is refreshed less often.",
            ("low GPU utilization with prog_bar=True", "cudaStreamSynchronize in self.log"),
        ),
        equivalent_to="self.log(..., prog_bar=False), where no progress bar is shown",
        note="Opt-in: for fast steps on a GPU, with prog_bar=True and a bar that is refreshed seldom. On a "
        "CPU there is nothing to wait for, and reading takes longer. The same numbers are shown at the same time; a "
        "tensor that a program itself puts into trainer.progress_bar_metrics becomes a number, too.",
    ),
)
