"""Gradient clipping works with fused optimizers in bf16-mixed precision."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.functions import stock_of
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _clip_gradients(class_name: str, since: str = "", before: str = "") -> Target:
    def build(original: Callable[..., None], namespace: str) -> Callable[..., None]:
        plugin = stock_of(original).__globals__.get(class_name)

        def clip_gradients(self: Any, *args: Any, **kwargs: Any) -> None:
            if self.scaler is not None:
                original(self, *args, **kwargs)
                return
            # Without a scaler nothing is unscaled, so the original's check for optimizers that unscale gradients is not
            # needed.
            super(plugin, self).clip_gradients(*args, **kwargs)

        return clip_gradients

    return Target(f"pytorch.plugins.precision.amp:{class_name}.clip_gradients", build, since=since, before=before)


PATCH = Patch(
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(_clip_gradients("MixedPrecisionPlugin", before="2.1.1"), _clip_gradients("MixedPrecision", since="2.1.1")),
    upstream=Upstream(
        issues=(21435,),
        pull_requests=(21436,),
        commit="043763be89",
        tests=("tests/tests_pytorch/plugins/precision/test_amp.py::test_optimizer_amp_scaling_support_in_step_method",),
        merged=True,
    ),
    impact=Impact(
        "With precision='bf16-mixed', gradient_clip_val and a fused optimizer, training fails at its first step "
        "although clipping would work.",
        ("does not allow for gradient clipping because it performs unscaling of gradients internally",),
        error="RuntimeError: The current optimizer, ..., does not allow for gradient clipping because it "
        "performs unscaling of gradients internally. HINT: Are you using a 'fused' optimizer?",
    ),
    note="Scripts that clip in configure_gradient_clipping are unchanged. A script that catches the error to "
    "choose another optimizer no longer gets the error, and trains with the fused optimizer. Without the "
    "patch, clip in configure_gradient_clipping.",
    around=("clipping-of-scaled-gradients",),
)
