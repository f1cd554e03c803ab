"""The gradients of an epoch's last accumulation are divided by its number of batches."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _training_step(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        trainer = self.trainer
        every, batches = trainer.accumulate_grad_batches, trainer.num_training_batches
        rest = batches % every if batches != float("inf") and not trainer.strategy.handles_gradient_accumulation else 0
        if rest and trainer.fit_loop.batch_idx >= batches - rest and result.closure_loss is not None:
            result.closure_loss = result.closure_loss * (every / rest)
            result._clone_loss()
        return result

    return training_step


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "gradients of the last accumulation of an epoch, if it has fewer batches"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.loops.optimization.automatic:_AutomaticOptimization._training_step", _training_step),),
    upstream=Upstream(issues=(19987,)),
    impact=Impact(
        "If accumulate_grad_batches does not divide the number of batches, the last optimizer step of an epoch "
        "has too small gradients. With accumulate_grad_batches=4 and ten batches, it has the gradients of two "
        "batches, divided by four.",
        ("gradient of the last accumulation window is too small",),
    ),
    opt_in="users who set an accumulate_grad_batches that does not divide the number of batches in an epoch",
    signs=("accumulate_grad_batches",),
    note="The patch is equivalent to a program that multiplies its loss by the missing factor. Opt-in because "
    "it changes the results of programs that work. Nothing changes for loaders without a length, because "
    "their last batches are not known in time, for manual optimization, and for DeepSpeed, which divides "
    "the loss itself.",
)
