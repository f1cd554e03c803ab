"""A resumed EarlyStopping uses the patience that the program passes."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target


def _load_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, state_dict: dict[str, Any]) -> None:
        given = self.patience
        original(self, state_dict)
        self.patience = given

    return load_state_dict


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("how it ends", "a resumed run stops after the patience that the program passes"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.callbacks.early_stopping:EarlyStopping.load_state_dict", _load_state_dict),),
    impact=Impact(
        "A resumed EarlyStopping uses the patience from the checkpoint and ignores the one that the program passes.",
        ("patience of EarlyStopping is not changed when resuming from a checkpoint",),
    ),
    opt_in="users who resume a run with a different patience for EarlyStopping",
    signs=("EarlyStopping patience ckpt_path",),
    note="The patch is equivalent to a program that sets the patience after the checkpoint is loaded. The "
    "count of checks without an improvement still comes from the checkpoint. Opt-in because a program may "
    "rely on the patience from the checkpoint.",
)
