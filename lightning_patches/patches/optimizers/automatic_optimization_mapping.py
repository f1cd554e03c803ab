"""With automatic optimization, training_step may return any mapping."""

from collections.abc import Mapping
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_METHOD = "ClosureResult.from_training_step_output"


def _from_training_step_output(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def from_training_step_output(cls: Any, training_step_output: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(training_step_output, Mapping) and not isinstance(training_step_output, dict):
            training_step_output = dict(training_step_output)
        return original(cls, training_step_output, *args, **kwargs)

    return from_training_step_output


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.1.0",),
    targets=(
        Target(f"pytorch.loops.optimization.automatic:{_METHOD}", _from_training_step_output, since="2.0.0"),
        Target(f"pytorch.loops.optimization.optimizer_loop:{_METHOD}", _from_training_step_output, before="2.0.0"),
    ),
    upstream=Upstream(pull_requests=(18657,), commit="ac713656da", fixed_in="2.1.0"),
    impact=Impact(
        "A training_step that returns a mapping other than a dict, such as a UserDict, ends the run with an error.",
        ("In automatic optimization, `training_step` must return a Tensor",),
        error="MisconfigurationException: In automatic optimization, `training_step` must return a Tensor, a dict, or "
        "None (where the step will be skipped).",
        frames=("/pytorch/loops/optimization/automatic.py",),
    ),
)
