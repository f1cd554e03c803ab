"""A resumed run with workers begins with the sampler's order for its epoch."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _select_data_fetcher(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _select_data_fetcher(trainer: Any, stage: Any) -> Any:
        if stage == "train":
            _set_epoch(trainer.fit_loop, namespace)
        return original(trainer, stage)

    return _select_data_fetcher


def _set_epoch(loop: Any, namespace: str) -> None:
    """Set the epoch of samplers whose order a resumed run draws now, in workers, and not when the epoch begins."""
    from torch.utils.data import DataLoader

    epoch = loop.epoch_progress.current.processed
    if epoch > 0 and (loop.restarting or getattr(loop, "is_resuming", False)):  # a property since 2.5.3
        set_epoch = upstream_module(namespace, "fabric.utilities.data")._set_sampler_epoch
        for loader in loop._combined_loader.flattened:
            if isinstance(loader, DataLoader) and loader.num_workers > 0:
                set_epoch(loader, epoch)


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("order of data", "the first epoch of a resumed run with DataLoader workers"),
    affected=(">=2.1.0,<=2.6.6",),
    targets=(Target("pytorch.loops.utilities:_select_data_fetcher", _select_data_fetcher),),
    witnesses=("pytorch.loops.fit_loop:_FitLoop.setup_data",),
    upstream=Upstream(issues=(21938,), proposed=(21941, 21960)),
    impact=Impact(
        "A resumed run with DataLoader workers, and a DistributedSampler or another sampler that has set_epoch(), uses "
        "the order of epoch 0 in its first epoch. From 2.1.0 to 2.5.2, this happens only if the run is resumed "
        "within an epoch.",
        (
            "resumed run repeats the order of the first epoch",
            "set_epoch is called after the workers of the DataLoader have started, when resuming",
        ),
    ),
    note="In the first epoch of such a run, set_epoch is called twice with the same epoch: before the workers start, "
    "and as on stock. Runs without workers are unchanged.",
)
