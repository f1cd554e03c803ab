"""self.clip_gradients clips to the given value in 16-mixed precision, too."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream, name_and_title

_AMP = "pytorch.plugins.precision.amp"


def are_scaled(scaler: Any, optimizer: Any) -> bool:
    """True if the gradients are scaled, and neither Lightning nor the program has unscaled them.

    Does not call the scaler, which may be a custom one.
    """
    state = getattr(scaler, "__dict__", {})
    states = state.get("_per_optimizer_states")
    if not state.get("_enabled") or not isinstance(states, dict):
        return False
    both = (optimizer, getattr(optimizer, "optimizer", optimizer))  # self.optimizers() returns a wrapper
    return not any(id(one) in states and states[id(one)]["stage"].name == "UNSCALED" for one in both)


def _clip_gradients(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def clip_gradients(self: Any, optimizer: Any, clip_val: Any = 0.0, *args: Any, **kwargs: Any) -> None:
        scaler = self.scaler
        if clip_val <= 0 or not are_scaled(scaler, optimizer):
            original(self, optimizer, clip_val, *args, **kwargs)
            return
        # The gradients stay scaled until the step: when optimizers take turns, the scaler forgets their states. What
        # has overflowed stays so, too: the scaler has to see it, and clipping by value would hide it.
        gradients = [p.grad for p in self.main_params(optimizer) if p.grad is not None and not p.grad.is_sparse]
        overflowed = [~gradient.isfinite() for gradient in gradients]
        original(self, optimizer, clip_val * scaler.get_scale(), *args, **kwargs)
        for gradient, where in zip(gradients, overflowed):
            gradient.masked_fill_(where, float("nan"))

    return clip_gradients


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.2.0",
    group="correctness",
    changes_results=Effect("numbers", "self.clip_gradients in manual optimization with precision='16-mixed'"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_AMP}:MixedPrecisionPlugin.clip_gradients", _clip_gradients, before="2.1.1"),
        Target(f"{_AMP}:MixedPrecision.clip_gradients", _clip_gradients, since="2.1.1"),
    ),
    upstream=Upstream(issues=(18089,)),
    impact=Impact(
        "In manual optimization with precision='16-mixed', self.clip_gradients clips gradients that are still scaled, "
        "by 65536 at first: the steps are that much too small, and the training stands still.",
        ("clip_gradients in manual optimization with 16-mixed", "loss does not decrease with self.clip_gradients"),
    ),
    opt_in="users who call self.clip_gradients in manual optimization with precision='16-mixed'",
    signs=("automatic_optimization clip_gradients",),
    note="Opt-in, since scripts make up for the scale by hand: by a value that is multiplied with it or was tuned to "
    "it, or by gradients that are divided and multiplied again. They train well as it is, and would not be clipped any "
    "more. Who unscales by scaler.unscale_() is recognized by the scaler's state, and clips as before. Equivalent to "
    "scaler.unscale_(optimizer), the clipping, scaler.step(optimizer) and scaler.update() by hand.",
    after=("fused-optimizer-clipping", "warn-clipping-of-scaled-gradients"),
)
