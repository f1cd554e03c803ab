"""What is unfrozen after DDP has wrapped the module is not synchronized: a warning says so."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.distributed._ranks import are_several
from lightning_patches.patches.distributed.ddp_with_unfrozen import frozen_in, trained_among

_FROZEN = "_lightning_patches_frozen_for_ddp"


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
        names = trained_among(vars(self).get(_FROZEN, []), self)
        if not names:
            return
        setattr(self, _FROZEN, [])
        notices.warn_once(
            "unfrozen-after-ddp",
            "Set LIGHTNING_PATCHES=default,ddp-with-unfrozen, or leave parameters that are to train later unfrozen "
            f"when fit begins, in a parameter group of their own with lr=0 until then: {len(names)} of them "
            f"({names[0]} is the first) were frozen when DDP wrapped the module, so it ignores them, and each rank "
            "trains its own copy from now on.",
        )

    return on_train_batch_start


PATCH = Patch(
    name="warn-unfrozen-after-ddp",
    added="0.2.0",
    title="Parameters that are unfrozen after DDP has wrapped the module are warned of",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.strategies.ddp:DDPStrategy._setup_model", _setup_model),
        Target("pytorch.strategies.strategy:Strategy.on_train_batch_start", _on_train_batch_start),
    ),
    upstream=Upstream(issues=(20340,)),
    impact=Impact(
        "Under DDP, parameters that are unfrozen after the start, by BackboneFinetuning or by hand, are not "
        "synchronized: each rank trains another backbone, without a word.",
        ("BackboneFinetuning under DDP", "weights differ between ranks after unfreezing"),
    ),
    note="This patch mends nothing: it warns, once, before the first batch for which it is so. The opt-in "
    "ddp-with-unfrozen mends it. Who could rely on the old behaviour: nobody: nothing changes but the warning.",
)
