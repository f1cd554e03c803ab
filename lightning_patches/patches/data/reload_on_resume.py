"""A resumed run reloads its data loaders in the same epochs as the uninterrupted run."""

from typing import Any, Callable, Iterator

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _setup_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any, *args: Any, **kwargs: Any) -> None:
        trainer, epoch = self.trainer, self.epoch_progress.current
        every = trainer.reload_dataloaders_every_n_epochs
        if not every or self._combined_loader is not None or trainer.ckpt_path is None:
            original(self, *args, **kwargs)
            return
        completed = epoch.completed
        begins = epoch.processed if epoch.ready == epoch.processed else completed
        epoch.completed = begins // every * every  # trainer.current_epoch, as when the uninterrupted run reloaded
        try:
            original(self, *args, **kwargs)
        finally:
            epoch.completed = completed

    return setup_data


def _epochs_of_validations(trainer: Any) -> Iterator[int]:
    """Yield the epoch of each validation until now, as in the uninterrupted run."""
    epoch, each = trainer.fit_loop.epoch_progress.current, trainer.check_val_every_n_epoch
    if each is not None:
        yield from range(each - 1, epoch.processed + 1, each)
    elif isinstance(trainer.val_check_interval, int):  # not an interval of time
        yield 0  # Lightning creates the data loaders when training starts
        batches = trainer.fit_loop.epoch_loop.batch_progress
        in_past_epochs = batches.total.ready - (batches.current.ready if epoch.ready > epoch.processed else 0)
        for batch in range(trainer.val_check_interval - 1, batches.total.ready, trainer.val_check_interval):
            yield min(batch * epoch.processed // max(in_past_epochs, 1), epoch.processed)


def _setup_validation(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any) -> None:
        is_first = self._combined_loader is None
        original(self)
        trainer = self.trainer
        every = trainer.reload_dataloaders_every_n_epochs
        is_resumed = trainer.state.fn == "fit" and trainer.ckpt_path is not None
        if every and is_first and is_resumed and self._combined_loader is not None:
            last = None
            for epoch in _epochs_of_validations(trainer):
                if last is None or epoch - last >= every:
                    last = self._last_val_dl_reload_epoch = epoch

    return setup_data


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("order of data", "the epochs in which a resumed run creates data loaders"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.loops.fit_loop:_FitLoop.setup_data", _setup_data),
        Target("pytorch.loops.evaluation_loop:_EvaluationLoop.setup_data", _setup_validation),
    ),
    upstream=Upstream(issues=(21492,), pull_requests=(21514, 21657)),
    impact=Impact(
        "With reload_dataloaders_every_n_epochs, a resumed run counts the epochs from where it was resumed, so "
        "it creates its data loaders in other epochs than the uninterrupted run. If it was resumed from the "
        "end of an epoch, train_dataloader first sees the current_epoch of that epoch instead of the next one.",
        (
            "reload_dataloaders_every_n_epochs is wrong after resuming",
            "train_dataloader is called with the wrong current_epoch after resuming",
        ),
    ),
    after=("stateful-loader-restored",),
    opt_in="users who resume runs with reload_dataloaders_every_n_epochs",
    signs=("ckpt_path reload_dataloaders_every_n_epochs",),
    note="Opt-in because programs return the loader of the next epoch themselves. The resumed run equals the "
    "uninterrupted run. A run that is not resumed is unchanged. With check_val_every_n_epoch=None, the "
    "epochs of past validations are computed from the number of batches, and so can be wrong if the "
    "epochs have different lengths.",
)
