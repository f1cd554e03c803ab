"""Warn when the learning rate finder leaves out optimizer steps under accumulation."""

from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, warn, warning
from lightning_patches.patches.finders import lr_finder_accumulation
from lightning_patches.patches.finders.lr_finder_accumulation import is_left_out


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=lambda self, *_, **__: len(self.losses), after=_after)


def _after(count: int, _: None, self: Any, trainer: Any, *__: Any, **___: Any) -> None:
    is_last = len(self.losses) == count and trainer.fit_loop.epoch_loop._num_ready_batches_reached()
    if is_last and is_left_out(trainer):
        warn(
            "lr-finder-accumulation",
            f"The learning rate finder leaves out the optimizer step at the end of each epoch, since the epoch's "
            f"batches are no multiple of accumulate_grad_batches={trainer.accumulate_grad_batches}. Search without "
            "accumulation, or set LIGHTNING_PATCHES=default,lr-finder-accumulation.",
        )


PATCH = warning(
    Target("pytorch.tuner.lr_finder:_LRCallback.on_train_batch_end", _on_train_batch_end),
    fixes=(lr_finder_accumulation,),
    added="0.3.0",
    when=", at the first step that is left out",
)
