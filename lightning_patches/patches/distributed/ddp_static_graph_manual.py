"""Gradients are synchronized with static_graph=True and manual optimization."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.distributed._averaging import average

_FLUSHED = "_lightning_patches_static_graph_flushed"


def _pre_backward(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def pre_backward(self: Any, closure_loss: Any) -> None:
        import torch

        original(self, closure_loss)
        # A static graph delays all reductions of its first iteration until the backward pass of the *outputs* of
        # forward(). With manual optimization that pass never happens: the backward starts at a loss inside forward().
        model = self.model
        if not isinstance(model, torch.nn.parallel.DistributedDataParallel) or not closure_loss.requires_grad:
            return
        if not getattr(model, "static_graph", False) or self.lightning_module.automatic_optimization:
            return
        if getattr(self, "_pl_static_graph_delay_done", True):
            if model.require_backward_grad_sync and not getattr(model, _FLUSHED, False):
                _average_after(closure_loss, model)
        elif model.require_backward_grad_sync:
            setattr(model, _FLUSHED, True)  # since 2.6, Lightning starts the reductions in the first fit of a Trainer
        else:
            self._pl_static_graph_delay_done = True  # under no_sync(), that ends in an internal error of torch

    return pre_backward


def _average_after(loss: Any, model: Any) -> None:
    """Average all gradients at the end of the backward pass of ``loss``.

    DDP itself would refuse a second backward in the same step: "Your training graph has changed in this iteration".
    """
    import torch

    def at_end() -> None:
        ignored = model.parameters_to_ignore
        average((p for n, p in model.module.named_parameters() if p.grad is not None and n not in ignored), group)

    def on_backward(gradient: Any) -> None:
        hook.remove()
        torch.autograd.Variable._execution_engine.queue_callback(at_end)

    group = model.process_group
    hook = loss.register_hook(on_backward)


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "gradients are averaged over the ranks"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(Target("pytorch.strategies.ddp:DDPStrategy.pre_backward", _pre_backward),),
    upstream=Upstream(
        pull_requests=(21251,),
        others=((21251, "2.6.0"),),
        commit="10675b49d6",
        tests=("tests/tests_pytorch/strategies/test_ddp_integration.py::test_ddp_gradients_synced",),
    ),
    impact=Impact(
        "With DDPStrategy(static_graph=True) and manual optimization, the ranks never average their gradients: "
        "each rank trains a different model, without a warning. In 2.6.0 to 2.6.6 this happens from the second "
        "fit of a Trainer on.",
        ("gradients differ between ranks", "weights diverge between ranks"),
    ),
    note="The patch averages all gradients at the end of each backward that is not under no_sync(), so a step may run "
    "several backwards, as a GAN does. DDP itself, and 2.6.0, refuse a second one. The collectives do not overlap "
    "with the backward, and no communication hook is used. The official fix (2.6.0) works in the first fit of a "
    "strategy. The patch does not replace it there, unless the first backward is under no_sync(), which ends in an "
    "error. A second fit, which has a new DistributedDataParallel module, stays unsynchronized up to 2.6.6. Without "
    "the patch, train without static_graph.",
)
