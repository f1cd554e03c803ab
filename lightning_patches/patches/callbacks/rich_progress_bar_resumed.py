"""RichProgressBar works when training is resumed within an epoch."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_RICH = "pytorch.callbacks.progress.rich_progress"


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        if self.progress is not None and self.is_enabled and self.train_progress_bar_id is None:
            description = self._get_train_description(trainer.current_epoch)
            self.train_progress_bar_id = self._add_task(self.total_train_batches, description)
        original(self, trainer, *args, **kwargs)

    return on_train_batch_end


PATCH = Patch(
    group="crash",
    affected=(">=2.5.0,<2.5.3",),
    targets=(Target(f"{_RICH}:RichProgressBar.on_train_batch_end", _on_train_batch_end),),
    upstream=Upstream(pull_requests=(21000,), commit="c1e4c225e9", fixed_in="2.5.3"),
    impact=Impact(
        "With a RichProgressBar, training that is resumed from a checkpoint within or at the end of an epoch fails "
        "after its first batch.",
        ("assert progress_bar_id is not None", "AssertionError in rich_progress.py"),
        error="AssertionError",
    ),
)
