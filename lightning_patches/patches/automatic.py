"""``pytorch/loops/optimization/automatic.py``: training step, backward and optimizer step of automatic optimization."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_MODULE = "pytorch.loops.optimization.automatic"
_LOOP = f"{_MODULE}:_AutomaticOptimization"


def _with_batch_idx(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def with_batch_idx(self: Any, batch_idx: int, *args: Any, **kwargs: Any) -> Any:
        # 0 stands for the first batch, and for any batch if training_step has no argument batch_idx.
        return original(self, batch_idx or self.trainer.fit_loop.epoch_loop.batch_idx, *args, **kwargs)

    return with_batch_idx


def _closure(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def closure(self: Any, *args: Any, **kwargs: Any) -> Any:
        import torch

        with torch.enable_grad():
            return original(self, *args, **kwargs)

    return closure


PATCHES = (
    Patch(
        name="accumulation-without-batch-idx",
        title="Gradients are accumulated even if training_step takes no batch_idx",
        group="correctness",
        affected=(">=2.0.0,<2.1.0",),
        targets=(
            Target(f"{_LOOP}._make_zero_grad_fn", _with_batch_idx),
            Target(f"{_LOOP}._optimizer_step", _with_batch_idx),
        ),
        witnesses=(f"{_LOOP}.run",),
        calls=("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.batch_idx()",),
        upstream=Upstream(
            pull_requests=(18619,),
            commit="9c4a3fd68a",
            fixed_in="2.1.0",
            tests=("tests/tests_pytorch/loops/test_training_epoch_loop.py::test_no_batch_idx_gradient_accumulation",),
        ),
        impact=Impact(
            "With accumulate_grad_batches and a training_step(self, batch), every batch throws away the gradients of "
            "the batch before it: only the last batch of each accumulation counts.",
            ("accumulate_grad_batches has no effect without batch_idx",),
        ),
    ),
    Patch(
        name="optimizer-closure-grad",
        title="Optimizers that call the closure under no_grad can train",
        group="crash",
        affected=(">=2.0.0,<2.0.7",),
        targets=(Target(f"{_MODULE}:Closure.closure", _closure),),
        upstream=Upstream(pull_requests=(18268,), fixed_in="2.0.7"),
        impact=Impact(
            "An optimizer whose step() runs under torch.no_grad() and does not switch gradients on for its closure "
            "ends the training at its first step.",
            ("element 0 of tensors does not require grad and does not have a grad_fn",),
        ),
    ),
)
