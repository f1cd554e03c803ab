"""Warn when a resumed EarlyStopping takes a different patience from the checkpoint."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title


def _load_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, state_dict: dict[str, Any]) -> None:
        given = self.patience
        original(self, state_dict)
        if self.patience != given:
            notices.warn_once(
                "early-stopping-patience",
                f"EarlyStopping has the patience of the checkpoint, {self.patience}, and not the {given} that the "
                "program gives. Set it after the checkpoint was loaded, for example in on_train_start, or set "
                "LIGHTNING_PATCHES=default,early-stopping-patience.",
            )

    return load_state_dict


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.callbacks.early_stopping:EarlyStopping.load_state_dict", _load_state_dict),),
    impact=Impact(
        "A resumed EarlyStopping uses the patience from the checkpoint and ignores the one that the program passes."
    ),
    after=("early-stopping-patience",),
    fixed_by=("early-stopping-patience",),
    note="This patch fixes nothing: it warns once. The opt-in patch early-stopping-patience fixes the bug.",
)
