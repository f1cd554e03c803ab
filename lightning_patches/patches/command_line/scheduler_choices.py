"""The command line of Lightning 1.6 to 1.8 accepts the learning rate schedulers of torch 2.

See also ``scheduler_types.py``.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _with_torchs(types: tuple[type, ...]) -> tuple[type, ...]:
    """Replace the former base class of torch's schedulers in the types by the current one."""
    from torch.optim import lr_scheduler

    torchs: type = getattr(lr_scheduler, "LRScheduler", lr_scheduler._LRScheduler)
    return tuple(torchs if one is lr_scheduler._LRScheduler else one for one in types)


def _populate_registries(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _populate_registries(subclasses: bool) -> None:
        from torch.optim import lr_scheduler

        original(subclasses)
        module: Any = sys.modules[original.__module__]
        registry = module.LR_SCHEDULER_REGISTRY
        (torchs,) = _with_torchs((lr_scheduler._LRScheduler,))
        found = module.get_all_subclasses(torchs) if subclasses else registry.get_members(lr_scheduler, torchs)
        for kind in found:
            registry.setdefault(kind.__name__, kind)

    return _populate_registries


def _asks_for_torchs(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def asks_for_torchs(*args: Any, **kwargs: Any) -> None:
        module: Any = sys.modules[original.__module__]
        types = module.LRSchedulerTypeTuple
        call = inspect.signature(original).bind(*args, **kwargs)
        call.apply_defaults()
        module.LRSchedulerTypeTuple = _with_torchs(types)
        try:
            original(*(_with_torchs(one) if isinstance(one, tuple) else one for one in call.args))
        finally:
            module.LRSchedulerTypeTuple = types

    return asks_for_torchs


_ASK = ("LightningArgumentParser.add_lr_scheduler_args", "LightningCLI._add_configure_optimizers_method_to_model")

PATCH = Patch(
    added="0.2.0",
    group="compat",
    affected=(">=1.6.0,<1.8.0", ">=1.8.0,<1.9.0"),
    only_with=("torch>=2.0",),
    targets=(
        Target("pytorch.utilities.cli:_populate_registries", _populate_registries),
        *(Target(f"pytorch.utilities.cli:{name}", _asks_for_torchs, since="1.6.0", before="1.7.0") for name in _ASK),
        *(Target(f"pytorch.cli:{name}", _asks_for_torchs, since="1.7.0") for name in _ASK),
    ),
    upstream=Upstream(issues=(15912,), fixed_in="1.9.0"),
    impact=Impact(
        "With torch 2.0 and later, LightningCLI accepts no learning rate scheduler: it exits with status 2.",
        (
            'Parser key "lr_scheduler":',
            "Could not generate a config for",
            "--lr_scheduler is not accepted by LightningCLI",
        ),
    ),
    note="On 1.6, --lr_scheduler accepts the name of a class but not a dotted path, even with torch 1.13; pass "
    "the path as --lr_scheduler.class_path.",
)
