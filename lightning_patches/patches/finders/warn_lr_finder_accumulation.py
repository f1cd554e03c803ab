"""Warn when the learning rate finder leaves out optimizer steps under accumulation."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title
from lightning_patches.patches.finders.lr_finder_accumulation import is_left_out


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        before = len(self.losses)
        original(self, trainer, pl_module, outputs, batch, batch_idx)
        if len(self.losses) == before and is_left_out(trainer):
            notices.warn_once(
                "lr-finder-accumulation",
                f"The learning rate finder leaves out the optimizer step at the end of each epoch, since the epoch's "
                f"batches are no multiple of accumulate_grad_batches={trainer.accumulate_grad_batches}. Search without "
                "accumulation, or set LIGHTNING_PATCHES=default,lr-finder-accumulation.",
            )

    return on_train_batch_end


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.tuner.lr_finder:_LRCallback.on_train_batch_end", _on_train_batch_end),),
    impact=Impact(
        "With accumulate_grad_batches, the learning rate finder leaves out the optimizer step at the end of an epoch "
        "whose batches are no multiple of it; with fewer batches in an epoch than it accumulates, it records nothing."
    ),
    after=("lr-finder-accumulation",),
    fixed_by=("lr-finder-accumulation",),
    note="This patch fixes nothing: it warns once, at the first step that is left out. The opt-in "
    "lr-finder-accumulation fixes it. Equivalent to the same program.",
)
