"""Gradients are accumulated even if training_step has no batch_idx parameter."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_LOOP = "pytorch.loops.optimization.automatic:_AutomaticOptimization"


def _with_batch_idx(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def with_batch_idx(self: Any, batch_idx: int, *args: Any, **kwargs: Any) -> Any:
        # batch_idx is 0 for the first batch, and for every batch if training_step has no batch_idx parameter.
        return original(self, batch_idx or self.trainer.fit_loop.epoch_loop.batch_idx, *args, **kwargs)

    return with_batch_idx


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "all batches of an accumulation count"),
    affected=(">=2.0.0,<2.1.0",),
    targets=(
        Target(f"{_LOOP}._make_zero_grad_fn", _with_batch_idx),
        Target(f"{_LOOP}._optimizer_step", _with_batch_idx),
    ),
    witnesses=(f"{_LOOP}.run",),
    upstream=Upstream(
        pull_requests=(18619,),
        commit="9c4a3fd68a",
        fixed_in="2.1.0",
        tests=("tests/tests_pytorch/loops/test_training_epoch_loop.py::test_no_batch_idx_gradient_accumulation",),
    ),
    impact=Impact(
        "With accumulate_grad_batches and a training_step(self, batch) without batch_idx, each batch discards "
        "the gradients of the previous one: only the last batch of each accumulation counts.",
        ("accumulate_grad_batches has no effect without batch_idx",),
    ),
)
