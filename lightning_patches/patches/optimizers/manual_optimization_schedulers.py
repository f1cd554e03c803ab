"""Manual optimization accepts learning rate schedulers that don't follow PyTorch's API."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _validate_scheduler_api(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _validate_scheduler_api(lr_scheduler_configs: Any, model: Any) -> None:
        refused = upstream_module(namespace, "pytorch.utilities.exceptions").MisconfigurationException
        for config in lr_scheduler_configs:
            try:
                original([config], model)
            except refused:
                if model.automatic_optimization:
                    raise

    return _validate_scheduler_api


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.0.6",),
    targets=(Target("pytorch.core.optimizer:_validate_scheduler_api", _validate_scheduler_api),),
    upstream=Upstream(
        pull_requests=(18092,),
        commit="ea92c218cc",
        fixed_in="2.0.6",
        tests=(
            "tests/tests_pytorch/trainer/optimization/test_manual_optimization.py::test_manual_optimization_with_non_pytorch_scheduler",
        ),
    ),
    impact=Impact(
        "With manual optimization, Lightning rejects a custom scheduler from configure_optimizers, although "
        "the program steps it itself.",
        ("doesn't follow PyTorch's LRScheduler API. You should override the `LightningModule.lr_scheduler_step` hook",),
        error="lightning.fabric.utilities.exceptions.MisconfigurationException: The provided lr scheduler `...` "
        "doesn't follow PyTorch's LRScheduler API. You should override the "
        "`LightningModule.lr_scheduler_step` hook",
    ),
)
