"""The learning rate finder continues if training_step skips a batch."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, pl_module: Any, outputs: Any, *args: Any, **kwargs: Any) -> None:
        import torch.distributed as dist

        skipped = outputs is None or (isinstance(outputs, dict) and not outputs)
        # The original runs a broadcast. If only some ranks skipped it, the others would wait for them. So with several
        # ranks, the original still fails.
        if not skipped or (dist.is_available() and dist.is_initialized()):
            original(self, trainer, pl_module, outputs, *args, **kwargs)
        elif (trainer.fit_loop.batch_idx + 1) % trainer.accumulate_grad_batches == 0:
            self.losses.append(float("nan"))  # belongs to the learning rate that was recorded when the batch started

    return on_train_batch_end


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.0.0,<2.0.7",),
    targets=(Target("pytorch.tuner.lr_finder:_LRCallback.on_train_batch_end", _on_train_batch_end),),
    upstream=Upstream(
        pull_requests=(18129,),
        commit="28c401ca8e",
        fixed_in="2.0.7",
        tests=("tests/tests_pytorch/tuner/test_lr_finder.py::test_lr_finder_training_step_none_output",),
    ),
    impact=Impact(
        "Tuner.lr_find raises a KeyError if training_step returns None to skip a batch, which fit allows.",
        ("KeyError: 'loss'", "in on_train_batch_end lr_finder"),
        error="KeyError: 'loss'",
    ),
    note="The patch acts only with one device. With several devices the search fails as without the patch, "
    "because if only some ranks skip a batch, the others would wait for them, as in the fixed releases.",
)
