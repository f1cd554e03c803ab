"""Lightning 1.5 to 1.8.3 accepts the learning rate schedulers of torch 2.

Before torch 2.0 all schedulers were subclasses of ``_LRScheduler``. torch 2.0 made ``LRScheduler`` their base class,
and kept the old name for another class, which is not their base class.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _configure(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _configure_schedulers(schedulers: list[Any], monitor: Optional[str], is_manual_optimization: bool) -> Any:
        from torch.optim import lr_scheduler

        # In a dict, Lightning accepts a scheduler of any class. ReduceLROnPlateau has its own branch, so skip it.
        torchs = getattr(lr_scheduler, "LRScheduler", lr_scheduler._LRScheduler)
        known = (lr_scheduler._LRScheduler, lr_scheduler.ReduceLROnPlateau)
        named = [
            {"scheduler": one} if isinstance(one, torchs) and not isinstance(one, known) else one for one in schedulers
        ]
        return original(schedulers if is_manual_optimization else named, monitor, is_manual_optimization)

    return _configure_schedulers


def _validate_scheduler_api(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _validate_scheduler_api(lr_scheduler_configs: list[Any], model: Any) -> None:
        from torch.optim import lr_scheduler

        torchs = getattr(lr_scheduler, "LRScheduler", lr_scheduler._LRScheduler)
        original([config for config in lr_scheduler_configs if not isinstance(config.scheduler, torchs)], model)

    return _validate_scheduler_api


PATCH = Patch(
    added="0.2.0",
    group="compat",
    affected=(">=1.5.0,<1.8.0", ">=1.8.0,<1.8.4"),
    only_with=("torch>=2.0",),
    after=("manual-optimization-schedulers",),
    targets=(
        Target("pytorch.trainer.optimizers:TrainerOptimizersMixin._configure_schedulers", _configure, before="1.6.0"),
        Target("pytorch.core.optimizer:_validate_scheduler_api", _validate_scheduler_api, since="1.6.0"),
    ),
    upstream=Upstream(issues=(15912,), pull_requests=(15940,), fixed_in="1.8.4"),
    impact=Impact(
        "With torch 2.0 and later, fit fails as soon as configure_optimizers returns a learning rate scheduler.",
        (
            "doesn't follow PyTorch's LRScheduler API",
            'The provided lr scheduler "<torch.optim.lr_scheduler... is invalid',
        ),
        error="lightning.fabric.utilities.exceptions.MisconfigurationException: The provided lr scheduler "
        "`...` doesn't follow PyTorch's LRScheduler API.",
    ),
)
