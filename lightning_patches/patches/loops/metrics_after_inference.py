"""A metric that validate, test or predict has reset can be updated in fit."""

from __future__ import annotations

from typing import Any

from lightning_patches.patch import Impact, Patch, Target
from lightning_patches.patches.loops._way_out import after_stage, module_of, named_modules


def _leave_inference(trainer: Any) -> None:
    """Replace the states that a metric's reset() has created in inference mode by normal tensors."""
    if trainer.training:
        return
    made: dict[int, Any] = {}  # the metrics of a MetricCollection share states
    for _, module in named_modules(module_of(trainer)):
        states = vars(module)
        for name in states.get("_defaults", ()):
            state = states.get(name)
            if getattr(state, "is_inference", bool)():
                _, states[name] = made.setdefault(id(state), (state, state.clone()))


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.trainer.trainer:Trainer._run_stage", after_stage(_leave_inference, on_error_only=False)),),
    impact=Impact(
        "fit ends in an error about inference tensors if validate, test or predict ran before with the same metric of "
        "torchmetrics.",
        (
            "Inplace update to inference tensor outside InferenceMode is not allowed",
            "fit fails on a torchmetrics metric after trainer.validate()",
        ),
        error="RuntimeError: Inplace update to inference tensor outside InferenceMode is not allowed.",
        frames=("/torchmetrics/",),
        would_tell="that validate, test or predict ran earlier with the same module",
    ),
    after=("modes-after-error",),
    note="The states keep their values. A program that passes inference_mode=False, or calls reset() before fit, is "
    "unchanged.",
)
