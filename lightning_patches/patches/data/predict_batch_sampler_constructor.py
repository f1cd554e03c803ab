"""predict accepts a subclass of torch's BatchSampler that has another constructor."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.data.predict_own_batch_sampler import as_it_is


def _resolve_sampler(original: Callable[..., dict[str, Any]], namespace: str) -> Callable[..., dict[str, Any]]:
    def _dataloader_init_kwargs_resolve_sampler(
        dataloader: Any, sampler: Any, mode: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        try:
            return original(dataloader, sampler, mode, *args, **kwargs)
        except Exception as error:
            predicting = upstream_module(namespace, "pytorch.trainer.states").RunningStage.PREDICTING
            batch_sampler = dataloader.batch_sampler
            # Below 2.1.0, Lightning raises another error from the TypeError of the constructor.
            is_made_anew = not isinstance(error.__cause__ or error, TypeError)
            # A different sampler is for several devices, and such a batch sampler can't use it.
            is_divided = mode is not predicting or sampler is not dataloader.sampler
            if is_made_anew or is_divided or not hasattr(batch_sampler, "__dict__"):
                raise
            return as_it_is(batch_sampler, namespace)

    return _dataloader_init_kwargs_resolve_sampler


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.utilities.data:_dataloader_init_kwargs_resolve_sampler", _resolve_sampler),),
    upstream=Upstream(issues=(20741,)),
    impact=Impact(
        "trainer.predict fails before its first batch if the DataLoader has a subclass of torch's BatchSampler whose "
        "constructor takes other arguments, although fit, validate and test accept it.",
        (
            "__init__() got an unexpected keyword argument 'batch_size'",
            "Lightning can't inject a (distributed) sampler into your batch sampler",
            "Trying to inject a modified sampler into the batch sampler",
        ),
        error="TypeError: ...__init__() got an unexpected keyword argument 'batch_size'",
        frames=("/loops/prediction_loop.py",),
    ),
    note="The batch sampler is used as it is: if it drops the last batch, predict does not predict these samples. On "
    "several devices the error stays, because each device would predict all of the data.",
    after=("predict-own-batch-sampler",),
)
