"""training_step may return None in 16-mixed precision."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _optimizer_step(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def optimizer_step(self: Any, optimizer: Any, model: Any, closure: Callable[[], Any], **kwargs: Any) -> Any:
        import torch

        if self.scaler is None or isinstance(optimizer, torch.optim.LBFGS):
            return original(self, optimizer, model=model, closure=closure, **kwargs)
        result = closure()
        # Without a backward there is nothing to unscale, and no step.
        if result is None and model.automatic_optimization:
            self._after_closure(model, optimizer)
            return None
        return original(self, optimizer, model=model, closure=lambda: result, **kwargs)

    return optimizer_step


PATCH = Patch(
    group="crash",
    affected=(">=2.0.0,<2.0.7",),
    targets=(Target("pytorch.plugins.precision.amp:MixedPrecisionPlugin.optimizer_step", _optimizer_step),),
    upstream=Upstream(
        issues=(17407, 15688, 9352),
        pull_requests=(18267,),
        fixed_in="2.0.7",
        tests=(
            "tests/tests_pytorch/plugins/precision/test_amp_integration.py::test_skip_training_step_with_grad_scaler",
        ),
    ),
    impact=Impact(
        "With precision='16-mixed', a training_step that returns None to skip a batch ends the run with an "
        "error, at the first batch or if it skips two batches in a row.",
        (
            "unscale_() has already been called on this optimizer since the last update()",
            "Attempted unscale_ but _scale is None",
        ),
        error="RuntimeError: unscale_() has already been called on this optimizer since the last update().",
        frames=("/plugins/precision/amp.py",),
    ),
)
