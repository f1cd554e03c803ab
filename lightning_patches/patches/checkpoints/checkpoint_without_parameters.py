"""load_from_checkpoint loads a module that has no parameters."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_SAVING = "pytorch.core.saving"


def _load_state(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _load_state(cls: type, checkpoint: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        loaded = original(cls, checkpoint, *args, **kwargs)
        if kwargs.get("strict") and not checkpoint.get("state_dict", True):
            import torch

            # The load was strict, so the module has no entries either. The caller would refuse an empty state dict. It
            # reads only the device of the first entry.
            checkpoint["state_dict"] = {"": torch.tensor(0)}
        return loaded

    return _load_state


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.0.2,<2.1.0",),
    targets=(Target(f"{_SAVING}:_load_state", _load_state),),
    witnesses=(f"{_SAVING}:_load_from_checkpoint",),
    upstream=Upstream(pull_requests=(18266,), commit="e24620c1af", fixed_in="2.1.0"),
    impact=Impact(
        "load_from_checkpoint fails for a LightningModule that has hyperparameters but neither parameters nor "
        "buffers, such as a constant baseline.",
        ("The state dict in ... contains no parameters",),
        error="ValueError: The state dict in ... contains no parameters.",
    ),
    note="With strict=False such a file is still refused, because its parameters may be missing; the official "
    "fix warns.",
    after=("checkpoint-extra-state",),
)
