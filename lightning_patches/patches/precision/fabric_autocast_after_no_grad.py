"""Layers that first run under no_grad still get gradients in Fabric's mixed precision."""

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.precision._autocast_cache import forward_context, keeps_casts_without_grad

PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "layers that first run under no_grad get gradients"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("fabric.plugins.precision.amp:MixedPrecision.forward_context", forward_context),),
    upstream=Upstream(issues=(20644,), pull_requests=(20921,)),
    impact=Impact(
        "With Fabric(precision='16-mixed') or 'bf16-mixed', layers that a model's forward() or a fabric.autocast() "
        "block first runs under torch.no_grad() get no gradients from later computations.",
        ("element 0 of tensors does not require grad and does not have a grad_fn",),
        error="RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
        frames=("/plugins/precision/amp.py",),
    ),
    probe=keeps_casts_without_grad,
    note="The cause is in torch, and torch's PR 165068 fixes it. A probe checks the installed torch; if it "
    "does not have the bug, nothing changes. The official fix in Lightning is for the Trainer only. A "
    "script that relies on untrained layers must freeze them with requires_grad_(False). Without the "
    "patch, call torch.clear_autocast_cache() after the block under no_grad.",
)
