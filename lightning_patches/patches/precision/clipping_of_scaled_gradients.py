"""self.clip_gradients clips to the given value in 16-mixed precision, too."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_AMP = "pytorch.plugins.precision.amp"


def are_scaled(scaler: Any, optimizer: Any) -> bool:
    """True if the gradients are scaled and were not unscaled by Lightning or the program.

    Methods of the scaler are not called, because it may be a custom one.
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
        # Leave the gradients scaled until the step, because the scaler loses the states of optimizers that take turns.
        # Gradients that have overflowed are set to NaN again after clipping by value, so that the scaler detects them.
        gradients = [p.grad for p in self.main_params(optimizer) if p.grad is not None and not p.grad.is_sparse]
        overflowed = [~gradient.isfinite() for gradient in gradients]
        original(self, optimizer, clip_val * scaler.get_scale(), *args, **kwargs)
        for gradient, where in zip(gradients, overflowed):
            gradient.masked_fill_(where, float("nan"))

    return clip_gradients


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect(
        "numbers", "training with self.clip_gradients, manual optimization and precision='16-mixed'"
    ),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_AMP}:MixedPrecisionPlugin.clip_gradients", _clip_gradients, before="2.1.1"),
        Target(f"{_AMP}:MixedPrecision.clip_gradients", _clip_gradients, since="2.1.1"),
    ),
    upstream=Upstream(issues=(18089,)),
    impact=Impact(
        "In manual optimization with precision='16-mixed', self.clip_gradients clips gradients that are still "
        "scaled, initially by 65536: the steps are too small by that factor, and training makes no progress.",
        ("clip_gradients in manual optimization with 16-mixed", "loss does not decrease with self.clip_gradients"),
    ),
    opt_in="users who call self.clip_gradients in manual optimization with precision='16-mixed'",
    signs=("automatic_optimization clip_gradients",),
    note="Opt-in because some scripts compensate for the scale: they multiply the clip value by it or tune the "
    "value to it, or they divide the gradients by the scale and multiply them again. Such scripts train "
    "correctly without the patch, and would clip nothing with it. Scripts that call scaler.unscale_() are "
    "recognized and unchanged. Without the patch, call scaler.unscale_(optimizer), clip, then call "
    "scaler.step(optimizer) and scaler.update().",
    after=("fused-optimizer-clipping",),
)
