"""A resumed run reloads its data loaders in the same epochs as the uninterrupted run."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream, name_and_title


def _setup_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any, *args: Any, **kwargs: Any) -> None:
        trainer, epoch = self.trainer, self.epoch_progress.current
        every = trainer.reload_dataloaders_every_n_epochs
        if not every or self._combined_loader is not None or trainer.ckpt_path is None:
            original(self, *args, **kwargs)
            return
        completed = epoch.completed
        if epoch.ready == epoch.processed:
            epoch.completed = epoch.processed  # trainer.current_epoch is then the epoch that begins
        try:
            original(self, *args, **kwargs)
            self._last_train_dl_reload_epoch = trainer.current_epoch // every * every
        finally:
            epoch.completed = completed

    return setup_data


def _setup_validation(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any) -> None:
        is_first = self._combined_loader is None
        original(self)
        trainer = self.trainer
        every, validated = trainer.reload_dataloaders_every_n_epochs, trainer.check_val_every_n_epoch
        is_resumed = trainer.state.fn == "fit" and trainer.ckpt_path is not None
        if every and validated and is_first and is_resumed and self._combined_loader is not None:
            last = validated - 1
            for epoch in range(last, trainer.fit_loop.epoch_progress.current.processed + 1, validated):
                last = epoch if epoch - last >= every else last
            self._last_val_dl_reload_epoch = last

    return setup_data


PATCH = Patch(
    *name_and_title(__name__, __doc__),
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
    note="The resumed run equals the uninterrupted run. A run that is not resumed is unchanged, and so are the "
    "data loaders of validation with check_val_every_n_epoch=None. No program is known that relies on the "
    "behavior without the patch.",
)
