"""Fabric says where an attribute set on its module does not reach the model."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Optional

from lightning_patches import notices
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.fabric.fabric_attributes_reach_model import is_set_up

_MENDS = "fabric-attributes-reach-model"


def _setattr(original: Optional[Callable[..., None]], namespace: str) -> Callable[..., None]:
    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if original is not None:  # the patch that mends it
            original(self, name, value)
            return
        if is_set_up(self) and not notices.was_said(_MENDS) and not _has(self, name):
            model = self._original_module
            if _has(model, name):
                notices.warn_once(
                    _MENDS,
                    f"Set LIGHTNING_PATCHES=default,{_MENDS}, or set {name} on model.module: what is set on the model "
                    f"that fabric.setup() returned does not reach {type(model).__name__}, which keeps its own {name}.",
                )
        super(upstream_module(namespace, "fabric.wrappers")._FabricModule, self).__setattr__(name, value)

    return __setattr__


def _has(module: Any, name: str) -> bool:
    """Without a call of the program's own code, as a property or ``__getattr__`` would be."""
    contents = module.__dict__
    parts = (contents.get(kind, ()) for kind in ("_parameters", "_buffers", "_modules"))
    return any(name in part for part in parts) or inspect.getattr_static(module, name, _MENDS) is not _MENDS


PATCH = Patch(
    name="warn-fabric-attributes",
    added="0.2.0",
    title="Fabric says where an attribute set on its module does not reach the model",
    group="correctness",
    affected=(">=2.0.0,<2.1.0",),
    targets=(Target("fabric.wrappers:_FabricModule.__setattr__", _setattr, adds=True),),
    upstream=Upstream(pull_requests=(17731,), commit="377bfd2768", fixed_in="2.1.0"),
    impact=Impact(
        "An attribute that is set on what fabric.setup() returned stays there: the model computes with the old value, "
        "while the wrapper shows the new one.",
        ("the model behind fabric.setup() keeps an attribute's old value",),
    ),
    after=(_MENDS,),
    note="This patch mends nothing: it warns, once. The opt-in fabric-attributes-reach-model mends it. Nothing but the "
    "warning is new.",
)
