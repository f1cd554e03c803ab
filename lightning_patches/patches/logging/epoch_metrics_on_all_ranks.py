"""All ranks reduce the metrics of an epoch when rank zero does so for its progress bar."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title


def _epoch_end_reached(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def epoch_end_reached(self: Any) -> None:
        original(self)
        trainer = self.trainer
        # Properties of the Trainer and the strategy may be the user's: read none of them.
        if trainer.state.stage == "train" and _has_ranks() and _has_lightnings(trainer.callbacks, namespace):
            self.metrics  # noqa: B018  reduces them and keeps the results, which the bar of rank zero then takes

    return epoch_end_reached


def _has_ranks() -> bool:
    import torch.distributed as dist

    return bool(dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1)


def _has_lightnings(callbacks: Any, namespace: str) -> bool:
    """True if the progress bar asks for all metrics at an epoch's end, on rank zero only."""
    base = upstream_module(namespace, "pytorch.callbacks").ProgressBar
    bar = next((type(callback) for callback in callbacks if isinstance(callback, base)), None)
    return bar is not None and bar.__module__.partition(".")[0] in ("lightning", "pytorch_lightning")


PATCH = Patch(
    *name_and_title(__name__, __doc__),
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
        "A job of several ranks hangs at the end of an epoch, or gets wrong metrics, if on_train_epoch_end calls a "
        "collective, such as metric.compute(), and the epoch's metrics are logged with sync_dist=True: rank zero "
        "reduces them for its progress bar, the other ranks do not.",
        (
            "DDP hangs at the end of the epoch in on_train_epoch_end with self.log(sync_dist=True, prog_bar=True)",
            "training hangs with metric.compute() in on_train_epoch_end and a progress bar",
            "deadlock with on_epoch=True and sync_dist=True under DDP",
        ),
    ),
    note="Equivalent to the same job with enable_progress_bar=False. Each rank reduces the metrics before the hooks "
    "of an epoch's end instead of after them; rank zero already does. Only with a progress bar of Lightning, since "
    "one of the program may ask for no metrics.",
)
