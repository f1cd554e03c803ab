"""torch's default dtype is restored after a step under double precision."""

from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Iterator

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


@contextmanager
def _leaving_the_default(context: ContextManager[None]) -> Iterator[None]:
    """Enter ``context``, and restore torch's default dtype afterwards, even after an error."""
    import torch

    before = torch.get_default_dtype()
    try:
        with context:
            yield
    finally:
        torch.set_default_dtype(before)


def _forward_context(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def forward_context(self: Any) -> ContextManager[None]:
        return _leaving_the_default(original(self))

    return forward_context


PATCH = Patch(
    group="correctness",
    changes_results=Effect(
        "numbers",
        "tensors created after an error are no longer in double precision, and tensors created between "
        "steps have the program's default dtype",
    ),
    affected=(">=1.8.0,<2.1.0",),
    targets=(
        Target("pytorch.plugins.precision.double:DoublePrecisionPlugin.forward_context", _forward_context),
        Target("fabric.plugins.precision.double:DoublePrecision.forward_context", _forward_context),
        Target("lite.plugins.precision.double:DoublePrecision.forward_context", _forward_context),
    ),
    upstream=Upstream(pull_requests=(18500, 18068), commit="eb3b96d8bd", fixed_in="2.1.0"),
    impact=Impact(
        "An exception in a step with precision='64-true' leaves torch's default dtype at float64: everything "
        "that the program creates afterwards, such as the next trial of a search, has double precision. A step "
        "without an exception sets it to float32, even if the program had set another one, so data is rounded "
        "from the second batch on.",
        (
            "default dtype is float64 after an exception",
            "default dtype is float32 after a step in 64-true",
            "expected scalar type Float but found Double",
        ),
        error="RuntimeError: expected scalar type Float but found Double",
        consequences=(
            Consequence(
                ("must have the same dtype, but got ... double",),
                r"64-true|precision=.?64|precision[/\\]double\.py",
                "a part of the program ran in double precision earlier",
            ),
        ),
    ),
)
