"""save_hyperparameters works in a dataclass with fields that __init__ does not have."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.hyperparameters._ignored import names_in


def _of_dataclass(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_hyperparameters(obj: Any, *args: Any, ignore: Any = None, frame: Any = None, **kwargs: Any) -> None:
        frame = frame or sys._getframe(1)  # the arguments are read from the calling frame
        missing: list[str] = []
        if dataclasses.is_dataclass(obj) and kwargs.get("given_hparams") is None:
            others = [field.name for field in dataclasses.fields(obj) if not field.init]
            missing = [name for name in others if name not in args and not hasattr(obj, name)]
            if missing:
                ignore = [*names_in(ignore), *(name for name in others if name not in args)]
        # The original reads every field before it drops ignored ones.
        vars(obj).update(dict.fromkeys(missing))
        try:
            original(obj, *args, ignore=ignore, frame=frame, **kwargs)
        finally:
            for name in missing:
                vars(obj).pop(name, None)

    return save_hyperparameters


PATCH = Patch(
    group="crash",
    affected=(">=1.8.0,<2.5.3",),
    targets=(Target("pytorch.utilities.parsing:save_hyperparameters", _of_dataclass),),
    upstream=Upstream(pull_requests=(21051,), fixed_in="2.5.3"),
    impact=Impact(
        "If a LightningModule or datamodule is a dataclass with a field(init=False), save_hyperparameters "
        "fails before that field is set.",
        ("object has no attribute",),
        error="AttributeError: '...' object has no attribute '...'",
    ),
    note="If all such fields are already set, the affected releases save them as hyperparameters. The patch "
    "does not change that.",
)
