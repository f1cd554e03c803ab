"""Validation runs even if the training data has fewer batches than its length."""

import inspect
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


def _advance_to_the_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def advance(self: Any, data_fetcher: Any) -> None:
        try:
            original(self, data_fetcher)
        except StopIteration:
            if data_fetcher.done:
                _end_short_epoch(self, namespace)
            raise

    return advance


def _end_short_epoch(loop: Any, namespace: str) -> None:
    """Do what belongs to the end of an epoch if the data had fewer batches than its length."""
    trainer, progress = loop.trainer, loop.batch_progress
    batches, every = progress.current.ready, trainer.val_check_batch
    if loop.restarting or progress.is_last_batch or batches == 0 or progress.current.completed < batches:
        return  # no batch is missing, or on_train_batch_start ended the epoch early
    stepped = not loop._should_accumulate()
    progress.is_last_batch = True
    loop.update_lr_schedulers("epoch", update_plateau_schedulers=False)
    due = (
        trainer.check_val_every_n_epoch is not None
        and every is not None  # 2.6: time-based validation
        and loop._should_check_val_epoch()
        and trainer.num_training_batches % every == 0
        and batches % every != 0  # otherwise validation ran after the last batch
    )
    if not due:
        return
    _join_broadcast(loop)
    trainer.validating = True
    if stepped:
        loop._batches_that_stepped -= 1  # so that loggers assign the validation to the last batch
        # Before 2.1.0 the validation loop clears the gradients.
        if "data_fetcher" in inspect.signature(loop.on_advance_end).parameters:
            call = upstream_module(namespace, "pytorch.trainer.call")
            call._call_lightning_module_hook(trainer, "on_validation_model_zero_grad")
    (getattr(loop, "_run_validation", None) or loop.val_loop.run)()  # 1.x has _run_validation
    loop._batches_that_stepped += stepped
    trainer.training = True


def _join_broadcast(loop: Any) -> None:
    """Take part in the broadcast before the next batch, which 2.5.2 and later run.

    A rank that still has a batch waits in this broadcast. It then fails, instead of waiting forever for a rank that
    validates.
    """
    import torch.distributed as dist

    broadcast = getattr(loop, "_broadcast_sigterm_tensor", None)
    if broadcast is not None and dist.is_available() and dist.is_initialized() and loop.trainer.world_size > 1:
        broadcast()


PATCH = Patch(
    group="correctness",
    changes_results=Effect(
        "numbers", "after a short epoch, validation runs and the schedulers step, and a checkpoint has is_last_batch"
    ),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.advance", _advance_to_the_end, since="2.0.0"),
        Target(
            "pytorch.loops.epoch.training_epoch_loop:TrainingEpochLoop.advance", _advance_to_the_end, before="2.0.0"
        ),
    ),
    upstream=Upstream(issues=(19624, 10290), pull_requests=(21552,)),
    impact=Impact(
        "If an IterableDataset yields fewer batches than its __len__ returns, the validation at the end of the "
        "epoch is skipped and the learning rate schedulers do not step, without a warning.",
        (
            "validation never runs with an IterableDataset",
            "IterableDataset with __len__ skips validation",
            "validation is not run on the last batch of the epoch",
        ),
        consequences=(
            Consequence(
                (
                    "conditioned on metric ... which is not available",
                    "could not find the monitored key in the returned metrics",
                    "(ckpt_path='best')` is set but `ModelCheckpoint` is not configured to save the best model",
                    "callback_metrics[ ... KeyError: '...",
                ),
                "IterableDataset.{0,3} has .{0,3}__len__.{0,3} defined",
                "an IterableDataset has a length, but yields fewer batches",
                unless=r"(?:of the following|available metrics are): .{0,1000}\bval|metrics: \[[^]]{0,1000}\bval",
            ),
        ),
    ),
    note="The last batch of such an epoch counts as the last one: a checkpoint has is_last_batch, as with a "
    "correct length. The same applies to fit(model, iter(loader)) after the program has taken batches "
    "from the iterator. Gradients that accumulate_grad_batches accumulates at the end of such an epoch "
    "still wait for the next epoch, because Lightning learns only after the last batch that it was the "
    "last. A program that ends its epochs itself, or validates at other times than their ends, gets no "
    "additional validation. If your dataset's length is too large on purpose to avoid validation, set "
    "limit_val_batches=0. Without the patch, correct the dataset's __len__.",
    after=("skipped-epoch-schedulers",),
)
