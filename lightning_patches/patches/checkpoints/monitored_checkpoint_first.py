"""A ModelCheckpoint without a monitor saves after those with a monitor."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_CONNECTOR = "pytorch.trainer.connectors.callback_connector"


def _reorder_callbacks(original: Callable[..., list[Any]], namespace: str) -> Callable[..., list[Any]]:
    def reorder_callbacks(callbacks: list[Any]) -> list[Any]:
        ordered = original(callbacks)
        kind = upstream_module(namespace, "pytorch.callbacks.model_checkpoint").ModelCheckpoint
        places = [place for place, callback in enumerate(ordered) if isinstance(callback, kind)]
        monitored_first = sorted((ordered[place] for place in places), key=lambda callback: callback.monitor is None)
        for place, callback in zip(places, monitored_first):
            ordered[place] = callback
        return ordered

    return reorder_callbacks


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "checkpoints, and which ModelCheckpoint ckpt_path='best' means"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTOR}:CallbackConnector._reorder_callbacks", _reorder_callbacks, before="2.0.0"),
        Target(f"{_CONNECTOR}:_CallbackConnector._reorder_callbacks", _reorder_callbacks, since="2.0.0"),
    ),
    upstream=Upstream(issues=(18687,)),
    impact=Impact(
        "If a ModelCheckpoint without a monitor is before one with a monitor in the list of callbacks, its checkpoint "
        "does not list the best checkpoint of the same validation: a run that resumes from it never deletes that "
        "file, and compares new checkpoints with an older score.",
        (
            "old best checkpoint is not deleted after resuming with two ModelCheckpoint callbacks",
            "ModelCheckpoint with save_top_k=1 leaves two files after a resume",
        ),
    ),
    opt_in="users who list a ModelCheckpoint without a monitor before one with a monitor",
    signs=("ModelCheckpoint monitor",),
    note="The patch is equivalent to a list of callbacks that begins with the ModelCheckpoints that have a monitor. "
    "Opt-in because trainer.checkpoint_callback, which ckpt_path='best' uses, is the first ModelCheckpoint.",
)
