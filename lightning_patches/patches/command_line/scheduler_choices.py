"""``pytorch/cli.py`` of 1.6 to 1.8: the schedulers that ``--lr_scheduler`` takes. See ``scheduler_types.py``."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _populate_registries(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _populate_registries(subclasses: bool) -> None:
        from torch.optim import lr_scheduler

        original(subclasses)
        torchs = getattr(lr_scheduler, "LRScheduler", lr_scheduler._LRScheduler)
        registry = upstream_module(namespace, "pytorch.utilities.cli").LR_SCHEDULER_REGISTRY
        for kind in _below(torchs) if subclasses else registry.get_members(lr_scheduler, torchs):
            registry.setdefault(kind.__name__, kind)

    return _populate_registries


def _below(kind: type) -> Iterator[type]:
    subclasses: list[type] = kind.__subclasses__()
    for one in subclasses:
        yield one
        yield from _below(one)


def _add_lr_scheduler_args(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def add_lr_scheduler_args(self: Any, *args: Any, **kwargs: Any) -> None:
        from torch.optim import lr_scheduler

        with _torchs_known(original) as torchs:
            types = sys.modules[original.__module__].LRSchedulerTypeTuple[1:]
            given = args[0] if args else kwargs.pop("lr_scheduler_class", types)
            if isinstance(given, tuple):
                given = tuple(torchs if one is lr_scheduler._LRScheduler else one for one in given)
            original(self, given, *args[1:], **kwargs)

    return add_lr_scheduler_args


def _add_configure_optimizers(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _add_configure_optimizers_method_to_model(self: Any, *args: Any, **kwargs: Any) -> None:
        with _torchs_known(original):
            original(self, *args, **kwargs)

    return _add_configure_optimizers_method_to_model


@contextmanager
def _torchs_known(original: Callable[..., None]) -> Iterator[type]:
    """The base of torch's schedulers among the types that the module asks for, for one call."""
    from torch.optim import lr_scheduler

    torchs: type = getattr(lr_scheduler, "LRScheduler", lr_scheduler._LRScheduler)
    module: Any = sys.modules[original.__module__]
    types = module.LRSchedulerTypeTuple
    module.LRSchedulerTypeTuple = (torchs, *types)
    try:
        yield torchs
    finally:
        module.LRSchedulerTypeTuple = types


def _in_cli(name: str, build: Callable[..., Any]) -> tuple[Target, ...]:
    return (
        Target(f"pytorch.utilities.cli:{name}", build, since="1.6.0", before="1.7.0"),
        Target(f"pytorch.cli:{name}", build, since="1.7.0"),
    )


PATCH = Patch(
    name="scheduler-choices",
    added="0.2.0",
    title="The command line of Lightning 1.6 to 1.8 takes the schedulers of torch 2",
    group="compat",
    affected=(),
    affected_1x=(">=1.6.0,<1.9.0",),
    targets=(
        Target("pytorch.utilities.cli:_populate_registries", _populate_registries),
        *_in_cli("LightningArgumentParser.add_lr_scheduler_args", _add_lr_scheduler_args),
        *_in_cli("LightningCLI._add_configure_optimizers_method_to_model", _add_configure_optimizers),
    ),
    upstream=Upstream(issues=(15912,), fixed_in="1.9.0"),
    impact=Impact(
        "With torch 2.0 and later, LightningCLI takes no learning rate scheduler: it exits with status 2.",
        (
            'Parser key "lr_scheduler":',
            "Could not generate a config for",
            "--lr_scheduler is not accepted by LightningCLI",
        ),
    ),
    note="On 1.6 --lr_scheduler takes the name of a class and no path, with torch 1.13 too; --lr_scheduler.class_path "
    "takes one.",
)
