"""All ranks reduce the metrics of an epoch when rank zero reduces them for its progress bar."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _epoch_end_reached(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def epoch_end_reached(self: Any) -> None:
        original(self)
        trainer = self.trainer
        # A program may override properties of the Trainer and the strategy, so none of them are read.
        if (
            _has_ranks()
            and trainer.state.stage == "train"
            and _is_read_by_bar(trainer.callbacks, namespace)
            and all(result.is_tensor for result in trainer._results.values())  # hooks can still update a metric object
        ):
            self.metrics  # noqa: B018  reduces the metrics and stores the results, which the progress bar of rank zero then reads

    return epoch_end_reached


def _has_ranks() -> bool:
    import torch.distributed as dist

    return bool(dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1)


def _is_read_by_bar(callbacks: Any, namespace: str) -> bool:
    """True if a progress bar of Lightning is on, which reads all metrics at the end of an epoch, on rank zero only."""
    base = upstream_module(namespace, "pytorch.callbacks").ProgressBar
    bar = next((callback for callback in callbacks if isinstance(callback, base)), None)
    is_lightnings = type(bar).__module__.partition(".")[0] in ("lightning", "pytorch_lightning")
    return is_lightnings and getattr(bar, "refresh_rate", 0) > 0


PATCH = Patch(
    added="0.3.0",
    group="hang",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.trainer.connectors.logger_connector.logger_connector:_LoggerConnector.epoch_end_reached",
            _epoch_end_reached,
        ),
    ),
    upstream=Upstream(issues=(19604, 21264)),
    witnesses=("pytorch.loops.fit_loop:_FitLoop.on_advance_end",),
    impact=Impact(
        "A job with several ranks hangs at the end of an epoch, or gets wrong metrics, if on_train_epoch_end "
        "calls a collective, such as metric.compute(), and the epoch's metrics are logged with sync_dist=True: "
        "rank zero reduces them for its progress bar, and the other ranks do not.",
        (
            "DDP hangs at the end of the epoch in on_train_epoch_end with self.log(sync_dist=True, prog_bar=True)",
            "training hangs with metric.compute() in on_train_epoch_end and a progress bar",
            "deadlock with on_epoch=True and sync_dist=True under DDP",
        ),
    ),
    note="Each rank reduces the metrics before the hooks at the end of an epoch instead of after them; rank zero "
    "already does. The results equal those of the same job with enable_progress_bar=False. The patch acts only "
    "with a progress bar of Lightning that is on, since other progress bars may not read the metrics, and only if "
    "no metric object of torchmetrics is logged, since hooks can still update it.",
)
