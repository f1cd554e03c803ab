"""predict accepts a batch sampler whose constructor differs from torch's BatchSampler."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _resolve_sampler(original: Callable[..., dict[str, Any]], namespace: str) -> Callable[..., dict[str, Any]]:
    def _dataloader_init_kwargs_resolve_sampler(
        dataloader: Any, sampler: Any, mode: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        predicting = upstream_module(namespace, "pytorch.trainer.states").RunningStage.PREDICTING
        # A different sampler is for several devices, and such a batch sampler can't use it.
        if mode is not predicting or sampler is not dataloader.sampler or _is_made_anew(dataloader.batch_sampler):
            return original(dataloader, sampler, mode, *args, **kwargs)
        return as_it_is(dataloader.batch_sampler, namespace)

    return _dataloader_init_kwargs_resolve_sampler


def as_it_is(batch_sampler: Any, namespace: str) -> dict[str, Any]:
    """Return the arguments of a DataLoader for predict that uses this batch sampler and not a copy of it."""
    overrides = vars(upstream_module(namespace, "pytorch.overrides.distributed"))
    wrapper = overrides.get("_IndexBatchSamplerWrapper") or overrides["IndexBatchSamplerWrapper"]  # 2.x, 1.x
    # torch's DataLoader requires these values with a batch sampler.
    settings = {"sampler": None, "shuffle": False, "batch_size": 1, "drop_last": False}
    return {**settings, "batch_sampler": wrapper(batch_sampler)}


def _is_made_anew(batch_sampler: Any) -> bool:
    """True if the original can create a copy with another drop_last, or if the batch sampler can't be wrapped."""
    like_torchs = hasattr(batch_sampler, "batch_size") and hasattr(batch_sampler, "drop_last")
    return like_torchs or hasattr(batch_sampler, "__pl_saved_args") or not hasattr(batch_sampler, "__dict__")


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.3.0",),
    targets=(Target("pytorch.utilities.data:_dataloader_init_kwargs_resolve_sampler", _resolve_sampler),),
    upstream=Upstream(pull_requests=(19678,), commit="438f29f07a", fixed_in="2.3.0"),
    impact=Impact(
        "trainer.predict fails before its first batch if the DataLoader has a custom batch sampler without batch_size "
        "and drop_last, although validate and test accept it.",
        (
            "object has no attribute 'batch_size'",
            "Lightning can't inject a (distributed) sampler into your batch sampler",
        ),
        error="TypeError: Lightning can't inject a (distributed) sampler into your batch sampler, ...",
        frames=("/loops/prediction_loop.py",),
    ),
    note="On several devices the error stays, because with 2.3.0 each device would predict all of the data.",
)
