"""configure_optimizers may return LRSchedulerConfig objects."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _configure_schedulers(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def configure_schedulers(schedulers: Any, *args: Any, **kwargs: Any) -> Any:
        config = upstream_module(namespace, "pytorch.utilities.types").LRSchedulerConfig
        # Lightning accepts a dict with the same entries.
        given = [dict(vars(each)) if type(each) is config else each for each in schedulers]
        return original(given, *args, **kwargs)

    return configure_schedulers


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target("pytorch.core.optimizer:_configure_schedulers_automatic_opt", _configure_schedulers),
        Target("pytorch.core.optimizer:_configure_schedulers_manual_opt", _configure_schedulers),
    ),
    upstream=Upstream(issues=(18870,)),
    impact=Impact(
        "If configure_optimizers returns an LRSchedulerConfig, which its type annotation allows, fit ends with "
        "an AttributeError.",
        ("'LRSchedulerConfig' object has no attribute 'optimizer'",),
        error="AttributeError: 'LRSchedulerConfig' object has no attribute 'optimizer'",
        frames=("/pytorch/core/optimizer.py",),
    ),
    note="The patch is equivalent to a dict with the same entries, which all releases accept. No program can "
    "rely on the behavior without the patch, since it is an error.",
)
