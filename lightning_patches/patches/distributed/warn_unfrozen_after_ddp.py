"""Warn about parameters that are unfrozen after DDP has wrapped the module."""

from __future__ import annotations

import weakref
from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title
from lightning_patches.patches.distributed._ranks import are_several
from lightning_patches.patches.distributed.ddp_with_unfrozen import frozen_in, trained_among

_FROZEN = "_lightning_patches_frozen_for_ddp"

_frozen: weakref.WeakKeyDictionary[Any, list[tuple[str, Any]]] = weakref.WeakKeyDictionary()
"""By Fabric strategy: the parameters that were frozen at setup. References are weak, so that models can be freed."""


def _setup_model(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _setup_model(self: Any, model: Any) -> Any:
        wrapped = original(self, model)
        if are_several():
            setattr(self, _FROZEN, frozen_in(model))
        return wrapped

    return _setup_model


def _on_train_batch_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_start(self: Any, batch: Any, batch_idx: int) -> None:
        original(self, batch, batch_idx)
        names = trained_among(vars(self).get(_FROZEN, []), lambda: self.optimizers)
        if names:
            setattr(self, _FROZEN, [])
            _say(names, "Set LIGHTNING_PATCHES=default,ddp-with-unfrozen, or leave", "fit begins")

    return on_train_batch_start


def _setup_module(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def setup_module(self: Any, module: Any) -> Any:
        wrapped = original(self, module)
        if are_several():
            frozen = [(name, weakref.ref(parameter)) for name, parameter in frozen_in(module)]
            _frozen.setdefault(self, []).extend(frozen)
        return wrapped

    return setup_module


def _optimizer_step(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def optimizer_step(self: Any, optimizer: Any, **kwargs: Any) -> Any:
        left = [(name, found()) for name, found in _frozen.get(self, ())]
        alive = [(name, parameter) for name, parameter in left if parameter is not None]
        names = trained_among(alive, lambda: [optimizer])
        if names:
            del _frozen[self]
            _say(names, "Leave", "Fabric.setup is called")
        return original(self, optimizer, **kwargs)

    return optimizer_step


def _say(names: list[str], remedy: str, when: str) -> None:
    notices.warn_once(
        "unfrozen-after-ddp",
        f"{len(names)} trained parameters ({names[0]} is the first) were frozen when DDP wrapped the module, so DDP "
        f"ignores them, and each rank trains a different copy from now on. {remedy} them unfrozen when {when}, in a "
        "separate parameter group with lr=0 until they are to train.",
        stacklevel=4,
    )


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.2.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.strategies.ddp:DDPStrategy._setup_model", _setup_model),
        Target("pytorch.strategies.strategy:Strategy.on_train_batch_start", _on_train_batch_start),
        Target("fabric.strategies.ddp:DDPStrategy.setup_module", _setup_module),
        Target("fabric.strategies.strategy:Strategy.optimizer_step", _optimizer_step),
    ),
    upstream=Upstream(issues=(20340,)),
    impact=Impact(
        "Under DDP, parameters that BackboneFinetuning or the script unfreezes after fit has started are not "
        "synchronized: each rank trains a different backbone, without a warning.",
        ("BackboneFinetuning under DDP", "weights differ between ranks after unfreezing"),
    ),
    note="This patch fixes nothing: it warns once, before the first batch that trains such parameters, or with "
    "Fabric before the first step. The opt-in patch ddp-with-unfrozen fixes the bug for the Trainer.",
    around=("ddp-with-unfrozen",),
)
