"""Warn about parameters that are unfrozen after DDP has wrapped the module."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Iterable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import Notes, observe, warn, warning
from lightning_patches.patches.distributed import ddp_with_unfrozen
from lightning_patches.patches.distributed._ranks import are_several
from lightning_patches.patches.distributed.ddp_with_unfrozen import frozen_in, trained_among

_frozen = Notes()
"""By strategy: the parameters that were frozen at setup. References are weak, so that models can be freed."""


def _setup_model(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    return observe(original, after=lambda _, __, self, model: _note(self, model, ()))  # it may be wrapped again


def _setup_module(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    return observe(original, after=lambda _, __, self, module: _note(self, module, _frozen.find(self, ())))


def _note(strategy: Any, model: Any, earlier: Iterable[Any]) -> None:
    if are_several():
        frozen = [(name, weakref.ref(parameter)) for name, parameter in frozen_in(model)]
        _frozen.add(strategy, [*earlier, *frozen])


def _pre_backward(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def before(self: Any, *_: Any) -> None:
        if _frozen:
            _check(self, self._optimizers, "Set LIGHTNING_PATCHES=default,ddp-with-unfrozen, or leave", "fit begins")

    return observe(original, before=before)


def _optimizer_step(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def before(self: Any, optimizer: Any, **_: Any) -> None:
        if _frozen:
            _check(self, [optimizer], "Leave", "Fabric.setup is called")

    return observe(original, before=before)


def _check(strategy: Any, optimizers: list[Any], remedy: str, when: str) -> None:
    left = [(name, found()) for name, found in _frozen.find(strategy, ())]
    names = trained_among([one for one in left if one[1] is not None], lambda: optimizers)
    if names:
        _frozen.take(strategy)
        warn(
            "unfrozen-after-ddp",
            f"{len(names)} trained parameters ({names[0]} is the first) were frozen when DDP wrapped the module, so "
            f"DDP ignores them, and each rank trains a different copy from now on. {remedy} them unfrozen when {when}, "
            "in a separate parameter group with lr=0 until they are to train.",
            stacklevel=5,
        )


PATCH = warning(
    Target("pytorch.strategies.ddp:DDPStrategy._setup_model", _setup_model),
    Target("pytorch.strategies.ddp:DDPStrategy.pre_backward", _pre_backward),
    Target("fabric.strategies.ddp:DDPStrategy.setup_module", _setup_module),
    Target("fabric.strategies.strategy:Strategy.optimizer_step", _optimizer_step),
    fixes=(ddp_with_unfrozen,),
    fixed_by=(),  # it does not fix Fabric
    added="0.2.0",
    affected=(">=2.0.0,<=2.6.6",),
    after=("ddp-static-graph-manual",),
    when=", before the first backward that trains such parameters, or with Fabric before the first step",
    note="It does not fix Fabric.",
)
