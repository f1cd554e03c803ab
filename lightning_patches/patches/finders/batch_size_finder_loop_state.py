"""The batch size finder can search at a later epoch, and leaves the loops as it found them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.finders._loops import LOOP_FLAGS, loops

_COUNTERS = ("_batches_that_stepped",)


def _progress(loop: Any) -> dict[str, Any]:
    """Return the counters of a loop that its checkpoints contain."""
    return {name: value for name, value in vars(loop).items() if hasattr(type(value), "reset_on_restart")}


def _begin_epoch(trainer: Any) -> None:
    """Let the trials begin like an epoch of a new fit, since they count optimizer steps from zero."""
    fit_loop = trainer.fit_loop
    fit_loop._combined_loader = None  # its iterator may have ended
    for count in (fit_loop.epoch_progress.total, fit_loop.epoch_progress.current):
        count.ready = count.started
    for loop in loops(trainer):
        if loop is not fit_loop:
            for progress in _progress(loop).values():
                progress.reset()
            vars(loop).update({name: 0 for name in _COUNTERS if name in vars(loop)})
        vars(loop).update({name: False for name in LOOP_FLAGS[:3] if name in vars(loop)})


def _scale_batch_size(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _scale_batch_size(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        all_loops = list(loops(trainer))
        counts = [(kept, deepcopy(kept.state_dict())) for loop in all_loops for kept in _progress(loop).values()]
        flags = [
            (vars(loop), {name: vars(loop)[name] for name in (*LOOP_FLAGS, *_COUNTERS) if name in vars(loop)})
            for loop in all_loops
        ]
        if trainer.state.fn == "fit" and trainer.fit_loop.epoch_progress.total.ready:
            _begin_epoch(trainer)
        try:
            return original(trainer, *args, **kwargs)
        finally:
            for kept, state in counts:
                kept.load_state_dict(state)
            for attributes, values in flags:
                attributes.update(values)

    return _scale_batch_size


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "training after a batch size search, at a later epoch or with max_steps"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.tuner.batch_size_scaling:_scale_batch_size", _scale_batch_size),),
    upstream=Upstream(issues=(21903,), proposed=(21916,)),
    impact=Impact(
        "A BatchSizeFinder that searches at a later epoch runs no batch, and picks a size that it has not tried; on "
        "2.5 and 2.6 all later epochs have no batch. After a search, a run with max_steps takes itself for "
        "resumed: no sanity check, and logged steps are one too high.",
        (
            "BatchSizeFinder in on_train_epoch_start runs no trial",
            "no batches after BatchSizeFinder at a milestone epoch",
            "no sanity check after scale_batch_size with max_steps",
        ),
        would_tell="that a batch size search ran at an epoch other than the first, or before a run with max_steps",
    ),
    after=("tuner-cleanup-on-error",),
    note="In a search at a later epoch, trainer.current_epoch is that epoch, and trainer.global_step counts the steps "
    "of each trial from zero, as in a search before training.",
)
