"""A resumed run creates one iterator of its data instead of two."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.loops._saved_batch import run_start_without_iter

_RESUMING = "_resuming_from_checkpoint"
"""Attribute of the fit loop: True if its state was loaded from a checkpoint."""


def _load_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        setattr(self, _RESUMING, True)

    return load_state_dict


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any, data_fetcher: Any) -> None:
        fit_loop = self.trainer.fit_loop
        is_resumed = vars(fit_loop).pop(_RESUMING, False)
        if not is_resumed or self._restarting or _is_reloaded(fit_loop) or not _is_unused(data_fetcher):
            original(self, data_fetcher)
            return
        # The fit loop has already created the iterator of this epoch. The original would create another one, unless
        # this is the first epoch or the loop continues within an epoch.
        run_start_without_iter(original, self, data_fetcher)

    return on_run_start


def _is_reloaded(fit_loop: Any) -> bool:
    """True if the uninterrupted run creates its data loaders anew in this epoch, and so starts them twice."""
    every = fit_loop.trainer.reload_dataloaders_every_n_epochs
    return bool(every and fit_loop.epoch_progress.current.processed % every == 0)


def _is_unused(data_fetcher: Any) -> bool:
    """True if training has not used a batch of the fetcher.

    If the data has no length, the fetcher fetches one batch ahead.
    """
    return bool(data_fetcher.fetched == len(getattr(data_fetcher, "batches", ())))


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "random values in resumed training: order of shuffled data, dropout, noise"),
    affected=(">=2.1.0,<2.5.3",),
    targets=(
        Target("pytorch.loops.loop:_Loop.load_state_dict", _load_state_dict),
        Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.on_run_start", _on_run_start),
    ),
    upstream=Upstream(
        pull_requests=(20775,),
        commit="25b1343f1c",
        fixed_in="2.5.3",
        tests=("tests/tests_pytorch/loops/test_double_iter_in_iterable_dataset.py::test_resume_training_with",),
    ),
    impact=Impact(
        "When training is resumed from a checkpoint, the first epoch calls iter() on the data twice: worker "
        "processes start twice, and a stream or a stateful dataset loses the items that the first iterator "
        "read.",
        (
            "iter called twice after resume",
            "IterableDataset skips samples after resuming from a checkpoint",
            "loss differs after resume with shuffled data",
        ),
    ),
    opt_in="users who resume training with a stream or with worker processes, on releases below 2.5.3",
    signs=("ckpt_path IterableDataset",),
    note="Opt-in because programs leave out the first iterator themselves. Each iterator of a DataLoader draws a "
    "random number. With one iterator less, a resumed run has other random numbers in all of its epochs, the same "
    "as in the fixed releases. They affect the order of shuffled data, or, without shuffling, dropout and noise. "
    "With worker processes and a sampler with set_epoch, such as DistributedSampler, the order is that of the "
    "first epoch, because these releases pass the indices to the workers before they call set_epoch. In an epoch "
    "whose data loaders reload_dataloaders_every_n_epochs creates anew, two iterators are created, as in the "
    "uninterrupted run; the opt-in reload-starts-once creates one in both.",
)
