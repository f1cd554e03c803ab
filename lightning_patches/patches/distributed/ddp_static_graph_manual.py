"""Gradients are synchronized with static_graph=True and manual optimization."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream, name_and_title

_SETTLED = "_lightning_patches_static_graph_settled"

_BATCH = "_lightning_patches_static_graph_batch"


def _pre_backward(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def pre_backward(self: Any, closure_loss: Any) -> None:
        import torch

        original(self, closure_loss)
        # In its first iteration a static graph delays all reductions until the backward pass of the *outputs* of
        # forward(). With manual optimization that pass never happens: the backward starts at a loss inside forward().
        # So the loss triggers the reductions instead of the outputs.
        model = self._model
        if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
            return
        if not getattr(model, "static_graph", False) or self.lightning_module.automatic_optimization:
            return
        batch = self.lightning_module.trainer.fit_loop.epoch_loop.total_batch_idx
        if getattr(model, _SETTLED, False):
            if model.__dict__.get(_BATCH) == batch and closure_loss.requires_grad:
                notices.warn_once(
                    "ddp-static-graph-two-backwards",
                    "DDPStrategy(static_graph=True): this training_step runs a second backward, for which torch "
                    "raises 'Your training graph has changed in this iteration', as with Lightning 2.6. Earlier "
                    "releases raise no error, but never average the gradients: each rank trains a different model. "
                    "Remove static_graph=True. To continue without averaging: "
                    "LIGHTNING_PATCHES=-ddp-static-graph-manual.",
                    all_ranks=True,
                )
            return
        if not closure_loss.requires_grad:
            return
        if not model.require_backward_grad_sync:
            setattr(model, _SETTLED, True)
            notices.report_misuse(
                "ddp-static-graph-no-sync",
                "DDPStrategy(static_graph=True): the first backward of manual optimization was under no_sync(). torch"
                " does not support that with a static graph, and the ranks will not average their gradients. Remove"
                " static_graph=True or no_sync().",
            )
            return
        if hasattr(self, "_pl_static_graph_delay_done"):
            self._pl_static_graph_delay_done = True  # prevents the official mechanism, which runs once per Trainer
        setattr(model, _BATCH, batch)
        _flush_with(closure_loss, model)

    return pre_backward


def _flush_with(loss: Any, model: Any) -> None:
    """Make autograd start the reductions at the end of the backward pass of ``loss``, once per module."""
    import torch

    flush = getattr(getattr(model, "reducer", None), "_delay_all_reduce", None)
    if flush is None:
        return

    def on_backward(gradient: Any) -> None:
        if not getattr(model, _SETTLED, False):
            setattr(model, _SETTLED, True)  # on the DDP module: each fit creates a new one, with a new reducer
            torch.autograd.Variable._execution_engine.queue_callback(flush)

    loss.register_hook(on_backward)


PATCH = Patch(
    *name_and_title(__name__, __doc__),
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
    note="torch does not support a static graph whose first backward is under no_sync(): the patch warns, and "
    "gradients stay unsynchronized. torch also does not support a second backward in the same step, as in "
    "a GAN: without the patch such a run finishes without averaging; with it, the run ends with torch's "
    "error, as from 2.6.0 on, after a warning with advice. The official fix (2.6.0) runs once per "
    "strategy, so a second fit, which has a new DistributedDataParallel module, stays unsynchronized up "
    "to 2.6.6. This patch runs once per module, and autograd starts the reductions. Without the patch, "
    "train without static_graph.",
)
