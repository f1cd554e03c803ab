"""Lightning does not start a DataLoader an extra time to check that it is iterable."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _check_dataloader_iterable(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def check_dataloader_iterable(dataloader: object, *args: Any, **kwargs: Any) -> None:
        from torch.utils.data import DataLoader

        if not isinstance(dataloader, DataLoader):
            original(dataloader, *args, **kwargs)

    return check_dataloader_iterable


PATCH = Patch(
    group="correctness",
    changes_results=Effect(
        "order of data", "shuffled data and other random values, because one iterator less is created"
    ),
    affected=(">=2.0.0,<2.0.8",),
    targets=(
        Target("pytorch.trainer.connectors.data_connector:_check_dataloader_iterable", _check_dataloader_iterable),
    ),
    upstream=Upstream(pull_requests=(18415,), commit="", fixed_in="2.0.8"),
    impact=Impact(
        "Before each run, Lightning creates an iterator of each DataLoader and discards it: worker processes "
        "start twice, a stream loses the items that these workers loaded, and the random state advances.",
        ("dataloader workers are started twice", "iter called twice on the dataloader"),
    ),
    note="The discarded iterator drew random numbers. Without it, a shuffled epoch has the order of the fixed "
    "releases.",
)
