"""With manual optimization, training_step may return any mapping."""

from collections.abc import Mapping
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _from_training_step_output(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def from_training_step_output(cls: Any, training_step_output: Any) -> Any:
        if isinstance(training_step_output, Mapping) and not isinstance(training_step_output, dict):
            training_step_output = dict(training_step_output)
        return original(cls, training_step_output)

    return from_training_step_output


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.0.0,<2.5.3",),
    targets=(
        Target("pytorch.loops.optimization.manual:ManualResult.from_training_step_output", _from_training_step_output),
    ),
    upstream=Upstream(
        pull_requests=(21011,),
        commit="791753b1c3",
        fixed_in="2.5.3",
        tests=("tests/tests_pytorch/trainer/optimization/test_manual_optimization.py::test_multiple_optimizers_step",),
    ),
    impact=Impact(
        "With manual optimization, a training_step that returns a TensorDict, a custom ModelOutput or another "
        "mapping that is not a dict ends the run with an error.",
        ("In manual optimization, `training_step` must either return a Tensor or have no return",),
        error="lightning.fabric.utilities.exceptions.MisconfigurationException: In manual optimization, "
        "`training_step` must either return a Tensor or have no return",
    ),
    note="The official fix requires that the mapping has a copy() method; this patch does not. Results for a "
    "dict, a tensor or None are unchanged.",
)
