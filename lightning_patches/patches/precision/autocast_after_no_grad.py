"""Layers that first run under no_grad still get gradients in mixed precision."""

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.precision._autocast_cache import forward_context, keeps_casts_without_grad

_PYTORCH = "pytorch.plugins.precision.amp"


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "layers that first run under no_grad get gradients"),
    affected=(">=2.0.0,<2.5.5",),
    targets=(
        Target(f"{_PYTORCH}:MixedPrecisionPlugin.forward_context", forward_context, before="2.1.1"),
        Target(f"{_PYTORCH}:MixedPrecision.forward_context", forward_context, since="2.1.1"),
    ),
    witnesses=(f"{_PYTORCH}:MixedPrecision.autocast_context_manager",),
    upstream=Upstream(
        issues=(20644,),
        pull_requests=(20921, 21616),
        commit="216f9ec90c",
        fixed_in="2.5.5",
        tests=("tests/tests_pytorch/plugins/precision/test_amp.py::test_amp_with_no_grad",),
        others=((21616, "unreleased"),),
    ),
    impact=Impact(
        "With precision='16-mixed' or 'bf16-mixed', layers that training_step first runs under torch.no_grad() or "
        "inference_mode() get no gradients from later computations.",
        (
            "element 0 of tensors does not require grad and does not have a grad_fn",
            "It looks like your LightningModule has parameters that were not used in producing the loss",
        ),
        error="RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
        frames=("/plugins/precision/amp.py",),
    ),
    probe=keeps_casts_without_grad,
    note="The cause is in torch, and torch's PR 165068 fixes it. A probe checks the installed torch; if it "
    "does not have the bug, nothing changes. Copies of a weight that a custom autograd function creates "
    "are not covered.",
)
