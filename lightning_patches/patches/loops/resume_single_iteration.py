"""Resumed training makes one iterator of its data, not two."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_EPOCH_LOOP = "pytorch.loops.training_epoch_loop:_TrainingEpochLoop"

_RESUMING = "_resuming_from_checkpoint"


def _load_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        setattr(self, _RESUMING, True)

    return load_state_dict


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any, data_fetcher: Any) -> None:
        resuming = vars(self.trainer.fit_loop).pop(_RESUMING, False)
        if not resuming or self._restarting or not _is_unused(data_fetcher):
            original(self, data_fetcher)
            return
        if _is_shuffled(self.trainer.fit_loop._combined_loader):
            notices.notice_once(
                "resume-single-iteration",
                "resume-single-iteration: this training is resumed with shuffled data, whose order in the first epoch "
                "is that of Lightning 2.5.3; LIGHTNING_PATCHES=-resume-single-iteration keeps that of this release",
            )
        # The fit loop has made the iterator of this epoch. The original makes another one in every epoch but the
        # first, unless it goes on in the middle of one.
        self._restarting = True
        try:
            original(self, data_fetcher)
        finally:
            self._restarting = False

    return on_run_start


def _is_shuffled(combined_loader: Any) -> bool:
    """Whether a loader draws its order with one of torch's samplers, or hands its workers the order of an epoch before
    its sampler is told which that is."""
    loaders = [vars(loader) for loader in combined_loader.flattened if hasattr(loader, "__dict__")]
    return any(
        type(sampler := loader.get("sampler")).__name__ in ("RandomSampler", "WeightedRandomSampler")
        or (loader.get("num_workers") and hasattr(type(sampler), "set_epoch"))
        for loader in loaders
    )


def _is_unused(data_fetcher: Any) -> bool:
    """Whether the training has not taken a batch from it yet; a fetcher without a length loads one ahead."""
    return bool(data_fetcher.fetched == len(getattr(data_fetcher, "batches", ())))


PATCH = Patch(
    name="resume-single-iteration",
    title="Resumed training makes one iterator of its data, not two",
    group="correctness",
    changes_results=Effect("order of data", "the first epoch of a resumed training with shuffled data"),
    affected=(">=2.1.0,<2.5.3",),
    targets=(
        Target("pytorch.loops.loop:_Loop.load_state_dict", _load_state_dict),
        Target(f"{_EPOCH_LOOP}.on_run_start", _on_run_start),
    ),
    calls=("pytorch.utilities.combined_loader:CombinedLoader.flattened()",),
    upstream=Upstream(
        pull_requests=(20775,),
        commit="25b1343f1c",
        fixed_in="2.5.3",
        tests=("tests/tests_pytorch/loops/test_double_iter_in_iterable_dataset.py::test_resume_training_with",),
    ),
    impact=Impact(
        "When training is resumed from a checkpoint, the first epoch calls iter() on the data twice: worker "
        "processes start twice, and a stream or a stateful dataset loses what the first iterator took.",
        (
            "iter called twice after resume",
            "IterableDataset skips samples after resuming from a checkpoint",
            "loss differs after resume with shuffled data",
        ),
    ),
    note="Where iter() draws random numbers, as a shuffling sampler does, the resumed training sees its data in "
    "another order than without the patch: the order of the fixed releases. With worker processes and a sampler that "
    "has set_epoch, such as DistributedSampler, that is the order of the first epoch: these releases hand the indices "
    "to the workers before set_epoch is called.",
)
